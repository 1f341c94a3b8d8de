/* SPDX-License-Identifier: MIT
 * Disturbs servers and their surroundings: stopped processes, wrong clocks, cut links. */
#include "cluster.h"
#include "cluster_impl.h"

#define NS_PER_MS INT64_C(1000000)

/* Stops the server's process with SIGSTOP; returns when the process has stopped. */
void cluster_pause(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    server_pause(&cluster->server[node]);
    cluster->paused[node] = true;
}

/* Continues the server's process with SIGCONT. */
void cluster_resume(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    server_resume(&cluster->server[node]);
    cluster->paused[node] = false;
}

/* Returns the settings of a server's clocks. Aborts without the option `clocks`. */
static struct clockshim *clock_of(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    if (cluster->clock[node] == NULL)
        cluster_die(cluster, node, "its clock needs the option clocks");
    return cluster->clock[node];
}

/* Steps the wall clock of a server by `step_ms`. */
void cluster_clock_step(struct cluster *cluster, unsigned node, int64_t step_ms)
{
    clockshim_step(clock_of(cluster, node), CLOCKSHIM_REALTIME, step_ms * NS_PER_MS);
}

/* Makes the wall clock of a server gain `rate_ppm` millionths from now on (negative: lose). */
void cluster_clock_rate(struct cluster *cluster, unsigned node, int64_t rate_ppm)
{
    clockshim_set_rate(clock_of(cluster, node), CLOCKSHIM_REALTIME, rate_ppm);
}

/* Sets the wall clock of a server right again. */
void cluster_clock_reset(struct cluster *cluster, unsigned node)
{
    clockshim_reset(clock_of(cluster, node), CLOCKSHIM_REALTIME);
}

/* Returns by how many ms a server's wall clock is ahead (negative: behind). */
int64_t cluster_clock_ahead_ms(struct cluster *cluster, unsigned node)
{
    return clockshim_ahead_ns(clock_of(cluster, node), CLOCKSHIM_REALTIME) / NS_PER_MS;
}

/* Sets which packets are lost between the test and a server from now on. Needs the option
 * `network`. Commands of the harness take another path. */
void cluster_cut(struct cluster *cluster, unsigned node, enum network_cut cut)
{
    cluster_check_node(cluster, node);
    if (!cluster->with_network || !network_set(&cluster->network, node, cut))
        cluster_die(cluster, node, "its link cannot be set");
}
