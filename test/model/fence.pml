/* SPDX-License-Identifier: MIT
 * The algorithm of fences on one page, for Spin: two attempts, three nodes. It is the reduced form
 * of the model in C (reduce.c says why nothing is missed): a key that is in the way of a VOTE has
 * vanished, and an answer is used at once or never. Every process may wait for ever: that is a
 * message that never arrives, or a client that has given up. Attempt number `me` proposes p; node n
 * executes its VOTE and its RAISE. -DEQUAL_ACCEPTED, -DGUARD=true and -DCOUNTS=true each switch off
 * one rule; Spin must then find a violation.
 *
 *     spin -a fence.pml && cc -O2 -DSAFETY -o pan pan.c && ./pan -E
 */
#ifndef FIRST
#define FIRST 0 /* F of the first node at the beginning */
#endif
#ifdef EQUAL_ACCEPTED
#define BEATS >=
#else
#define BEATS > /* a proposal is accepted if it is larger */
#endif
#ifndef GUARD
#define GUARD owner[n] == me + 1
#endif
#ifndef COUNTS
#define COUNTS a[me].used[n]
#endif
#define QUORUM 2
#define COUNT(set) (set[0] + set[1] + set[2])

byte F[3];     /* the register of each node; it never decreases */
byte owner[3]; /* whose key is there: 0, or attempt + 1 */

/* What the client of an attempt knows. */
typedef attempt {
    byte p;             /* proposal; 0: not begun */
    byte top;           /* largest number that the answers show */
    byte f;             /* the token chosen for the second round; 0: no second round */
    byte fence;         /* the token that was returned; 0: none */
    bool decided;       /* no more votes are used */
    bool late;          /* the other one had returned before this one began */
    bool used[3];       /* nodes whose vote counts */
    bool accepted[3];   /* nodes that have accepted p */
    bool acked[3]       /* nodes whose ACK counts */
}
attempt a[2];

/* Returns a fencing token. Tokens differ, and grow from one attempt to those that begin after it has returned. */
inline finish(number)
{
    a[me].fence = number;
    assert(number != a[1 - me].fence);
    assert(!a[me].late || number > a[1 - me].fence)
}

/* Node n executes the VOTE of an attempt, and the client uses the answer at once or never. */
proctype Vote(byte me, n)
{
    byte prev;
    bool accepted;
    atomic {
        a[me].p > 0;
        prev = F[n];
        owner[n] = me + 1;
        if
        :: a[me].p BEATS prev -> F[n] = a[me].p; accepted = true
        :: else
        fi;
        if
        :: !a[me].decided ->
            a[me].used[n] = true;
            a[me].accepted[n] = accepted;
            if
            :: F[n] > a[me].top -> a[me].top = F[n]
            :: else
            fi
        :: true
        fi
    }
}

/* Node n executes the RAISE of an attempt. The ACK counts at once. */
proctype Raise(byte me, n)
{
    atomic {
        a[me].f > 0;
        if
        :: GUARD ->
            if
            :: a[me].f > F[n] -> F[n] = a[me].f
            :: else
            fi;
            a[me].acked[n] = COUNTS
        :: else
        fi
    }
}

/* Begins the attempt, and returns after one round or after two. */
proctype Client(byte me)
{
    atomic {
        if
        :: a[me].p = 1
        :: a[me].p = 2
        :: a[me].p = 3
        fi;
        a[me].late = (a[1 - me].fence > 0)
    };
    if
    :: atomic { COUNT(a[me].accepted) >= QUORUM -> a[me].decided = true; finish(a[me].p) }
    :: atomic { COUNT(a[me].used) >= QUORUM -> a[me].decided = true; a[me].f = a[me].top + 1 };
       atomic { COUNT(a[me].acked) >= QUORUM -> finish(a[me].f) }
    fi
}

init {
    atomic {
        F[0] = FIRST;
        run Client(0); run Client(1);
        run Vote(0, 0); run Vote(0, 1); run Vote(0, 2);
        run Vote(1, 0); run Vote(1, 1); run Vote(1, 2);
        run Raise(0, 0); run Raise(0, 1); run Raise(0, 2);
        run Raise(1, 0); run Raise(1, 1); run Raise(1, 2)
    }
}
