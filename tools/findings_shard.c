/* SPDX-License-Identifier: MIT
 * Makes the findings of `redlock nodes` about a shard as a whole: duplicates, and whether enough
 * servers grant locks.
 */
#include "findings.h"

/* Adds the findings about the whole shard: a server is listed twice, too few servers are eligible
 * or grant locks, no server is in reserve, or the number of servers is unwise. If the check is
 * incomplete, nothing is known of how many grant locks. */
void findings_of_shard(struct examination *exam)
{
    bool duplicates = false, known = !exam->incomplete;

    for (size_t i = 0; i < exam->count; i++)
        duplicates = duplicates || exam->duplicate_of[i] >= 0 ||
                     exam->nodes[i].cause == REDLOCK_CAUSE_DUPLICATE;
    if (duplicates)
        finding_add(exam, FINDING_CRIT, -1, "duplicate", "remove one of its addresses",
                    "a server is listed twice: no lock can be acquired until that is repaired");
    if (known && exam->eligible < exam->quorum)
        finding_add(exam, FINDING_CRIT, -1, "no_quorum", "see the findings about the servers",
                    "%zu of %zu servers are eligible, %zu required: no lock can be acquired",
                    exam->eligible, exam->count, exam->quorum);
    else if (known && exam->useful < exam->quorum)
        finding_add(exam, FINDING_CRIT, -1, "no_quorum", "see the findings about the servers",
                    "%zu of %zu servers grant, extend and release locks, %zu required",
                    exam->useful, exam->count, exam->quorum);
    else if (known && exam->useful == exam->quorum && exam->useful < exam->count)
        finding_add(exam, FINDING_WARN, -1, "no_reserve",
                    "repair another server before you stop one",
                    "only a bare majority is eligible: if one more fails, no lock can be acquired");
    if (exam->count == 1)
        finding_add(exam, FINDING_WARN, -1, "one_server", "use three or five",
                    "one server: if it fails, all locks are lost");
    else if (exam->count % 2 == 0)
        finding_add(exam, FINDING_WARN, -1, "even", "use an odd number",
                    "an even number of servers tolerates no more failures than one server less");
}
