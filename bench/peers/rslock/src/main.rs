/* SPDX-License-Identifier: MIT
 * rslock as a driver: see ../../README.md.
 *
 * Settings: tokio with its multi-threaded runtime, one LockManager for all callers, as in its README; the default
 * retries (3, after up to 200 ms). The driver uses `lock` and `unlock` instead of the guard, as the documentation
 * advises for tokio, where dropping a guard does nothing. The library has no time limit of its own; the connections
 * have that of the redis crate. */
use rslock::{LockError, LockManager};
use std::io::{BufRead, Write};
use std::time::Duration;

fn now() -> i64 {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut at) };
    at.tv_sec as i64 * 1_000_000_000 + at.tv_nsec as i64
}

#[derive(Clone)]
struct Task {
    manager: LockManager,
    resource: String,
    ttl: Duration,
    hold: Duration,
    own: bool,
}

fn reason(error: &LockError) -> String {
    let word = match error {
        LockError::Unavailable => "taken",
        _ => "error",
    };
    format!("{word} {}", error.to_string().replace('\n', " "))
}

async fn contend(task: Task, number: usize, end: i64) -> Vec<String> {
    let mut lines = Vec::new();
    let name = if task.own { format!("{}{number}", task.resource) } else { task.resource.clone() };
    let mut want = 0;
    while now() < end {
        if want == 0 {
            want = now();
        }
        let lock = match task.manager.lock(name.as_bytes(), task.ttl).await {
            Ok(lock) => lock,
            Err(error) => {
                lines.push(format!("failed {number} {want} {} {}", now(), reason(&error)));
                continue;
            }
        };
        let grant = now();
        let until = grant + lock.validity_time as i64 * 1_000_000;
        if !task.hold.is_zero() {
            tokio::time::sleep(task.hold).await;
        }
        let called = now();
        task.manager.unlock(&lock).await;
        lines.push(format!("hold {number} {want} {grant} {} {}", called.min(until), now()));
        want = 0;
    }
    lines
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |i: usize| arguments[i].parse::<usize>().expect("a number");
    let (first, count) = (value(4), value(5));
    let task = Task {
        manager: LockManager::new(arguments[0].split(',').map(String::from).collect()),
        resource: arguments[1].clone(),
        ttl: Duration::from_millis(value(2) as u64),
        hold: Duration::from_micros(value(3) as u64),
        own: arguments.len() > 6,
    };
    /* Connect: the first lock opens the connections. */
    let probe = format!("{}probe", task.resource);
    match task.manager.lock(probe.as_bytes(), task.ttl).await {
        Ok(lock) => task.manager.unlock(&lock).await,
        Err(error) => {
            eprintln!("rslock: {error}");
            std::process::exit(69);
        }
    };
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let end: i64 = line.expect("input").trim().parse().expect("a time");
        let running: Vec<_> =
            (0..count).map(|i| tokio::spawn(contend(task.clone(), first + i, end))).collect();
        let mut lines = Vec::new();
        for one in running {
            lines.append(&mut one.await.expect("a caller"));
        }
        lines.push("over\n".to_string());
        let mut out = std::io::stdout().lock();
        out.write_all(lines.join("\n").as_bytes()).expect("output");
        out.flush().expect("output");
    }
}
