/* SPDX-License-Identifier: MIT
 * Disturbs servers and their surroundings: stopped processes, wrong clocks, cut links. */
#include "cluster.h"
#include "cluster_impl.h"

#define NS_PER_MS INT64_C(1000000)

void cluster_pause(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    server_pause(&cluster->server[node]);
    cluster->paused[node] = true;
}

void cluster_resume(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    server_resume(&cluster->server[node]);
    cluster->paused[node] = false;
}

static struct clockshim *clock_of(struct cluster *cluster, unsigned node)
{
    cluster_check_node(cluster, node);
    if (cluster->clock[node] == NULL)
        cluster_die(cluster, node, "its clock needs the option clocks");
    return cluster->clock[node];
}

void cluster_clock_step(struct cluster *cluster, unsigned node, int64_t step_ms)
{
    clockshim_step(clock_of(cluster, node), CLOCKSHIM_REALTIME, step_ms * NS_PER_MS);
}

void cluster_clock_rate(struct cluster *cluster, unsigned node, int64_t rate_ppm)
{
    clockshim_set_rate(clock_of(cluster, node), CLOCKSHIM_REALTIME, rate_ppm);
}

void cluster_clock_reset(struct cluster *cluster, unsigned node)
{
    clockshim_reset(clock_of(cluster, node), CLOCKSHIM_REALTIME);
}

int64_t cluster_clock_ahead_ms(struct cluster *cluster, unsigned node)
{
    return clockshim_ahead_ns(clock_of(cluster, node), CLOCKSHIM_REALTIME) / NS_PER_MS;
}

void cluster_cut(struct cluster *cluster, unsigned node, enum network_cut cut)
{
    cluster_check_node(cluster, node);
    if (!cluster->with_network || !network_set(&cluster->network, node, cut))
        cluster_die(cluster, node, "its link cannot be set");
}
