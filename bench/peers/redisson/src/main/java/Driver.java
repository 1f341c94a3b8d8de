/* SPDX-License-Identifier: MIT
 * Redisson as a driver: see ../../../../README.md. Uses RedissonRedLock, which needs a majority, or with -Dkind=multi
 * RedissonMultiLock, which needs all servers and to which its documentation points instead. -Dkind=fair: getFairLock on
 * the only server of the list, whose waiters are served in order of arrival.
 *
 * Settings: a client for each server with the default connections and time limits; tryLock with a waiting time and a
 * lease time, so that the watchdog does nothing; a thread for each caller, as its locks belong to threads. The library
 * retries by itself until the waiting time is used up. */
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.TrustManagerFactory;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

@SuppressWarnings("deprecation")
public final class Driver {
    private static final long MS = 1_000_000;
    private static final long UNCONTENDED_MS = 1000; // longest wait of a caller without contention
    private static final boolean MULTI = "multi".equals(System.getProperty("kind"));
    private static final boolean FAIR = "fair".equals(System.getProperty("kind"));

    private final List<RedissonClient> clients = new ArrayList<>();
    private final String resource;
    private final long ttlMs;
    private final long holdUs;
    private final int first;
    private final int count;
    private final boolean own;

    // Returns the authorities in the file that SSL_CERT_FILE names: Java has no variable for them.
    private static TrustManagerFactory authorities() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(System.getenv("SSL_CERT_FILE"))) {
            for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(file)) {
                store.setCertificateEntry("authority" + store.size(), one);
            }
        }
        var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return factory;
    }

    private Driver(String[] words) throws Exception {
        for (String url : words[0].split(",")) {
            Config config = new Config();
            config.useSingleServer().setAddress(url);
            if (url.startsWith("rediss:")) config.setSslTrustManagerFactory(authorities());
            clients.add(Redisson.create(config));
        }
        resource = words[1];
        ttlMs = Long.parseLong(words[2]);
        holdUs = Long.parseLong(words[3]);
        first = Integer.parseInt(words[4]);
        count = Integer.parseInt(words[5]);
        own = words.length > 6;
    }

    private static String oneLine(Throwable error) {
        return String.valueOf(error).replace('\n', ' ');
    }

    private RLock lock(int number) {
        String name = own ? resource + number : resource;
        if (FAIR) return clients.get(0).getFairLock(name);
        RLock[] parts = clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new);
        return MULTI ? new RedissonMultiLock(parts) : new RedissonRedLock(parts);
    }

    private void hold(RLock lock, int number, long want, long start, StringBuilder lines)
            throws InterruptedException {
        long grant = System.nanoTime();
        // The library does not report a deadline. This is a lower bound.
        long until = Math.max(start + ttlMs * MS, grant);
        if (holdUs > 0) TimeUnit.MICROSECONDS.sleep(holdUs);
        long called = System.nanoTime();
        long done;
        try {
            lock.unlock();
            done = System.nanoTime();
        } catch (RuntimeException error) {
            done = System.nanoTime();
            lines.append("failed ").append(number).append(' ').append(called).append(' ').append(done);
            lines.append(" release ").append(oneLine(error)).append('\n');
        }
        lines.append("hold ").append(number).append(' ').append(want).append(' ').append(grant);
        lines.append(' ').append(Math.min(called, until)).append(' ').append(done).append('\n');
    }

    private void contend(int number, long end, StringBuilder lines) throws InterruptedException {
        RLock lock = lock(number);
        long want = 0;
        long start;
        while ((start = System.nanoTime()) < end) {
            if (want == 0) want = start;
            String reason = "taken";
            try {
                long waitMs = own ? UNCONTENDED_MS : Math.max(1, (end - start) / MS);
                if (lock.tryLock(waitMs, ttlMs, TimeUnit.MILLISECONDS)) {
                    hold(lock, number, want, start, lines);
                    want = 0;
                    continue;
                }
            } catch (RuntimeException error) {
                reason = "error " + oneLine(error);
            }
            lines.append("failed ").append(number).append(' ').append(want).append(' ');
            lines.append(System.nanoTime()).append(' ').append(reason).append('\n');
        }
    }

    private void slice(long end) throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        List<StringBuilder> lines = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            StringBuilder mine = new StringBuilder();
            int number = first + i;
            lines.add(mine);
            threads.add(new Thread(() -> {
                try {
                    contend(number, end, mine);
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        for (StringBuilder mine : lines) System.out.print(mine);
        System.out.println("over");
        System.out.flush();
    }

    public static void main(String[] words) throws Exception {
        Driver driver = new Driver(words);
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            driver.slice(Long.parseLong(line.trim()));
        }
        for (RedissonClient client : driver.clients) client.shutdown();
    }
}
