import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer: a member of a group, or one that reads every partition. */
final class ConsumerTask implements Task, ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final Duration CLOSE = Duration.ofSeconds(5);

    private final Settings settings;
    private final EventLog log;
    private final String name;
    private final String group;
    private final String commits;
    private final long processing;
    private final boolean gaps;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<TopicPartition, Long> next = new HashMap<>();
    private final Map<TopicPartition, Long> reached = new TreeMap<>(
            (left, right) -> left.toString().compareTo(right.toString()));
    private volatile boolean ended;
    private boolean leaving;

    ConsumerTask(Settings settings, EventLog log) {
        this.settings = settings;
        this.log = log;
        name = settings.text("name");
        group = settings.text("group");
        commits = settings.text("commits");
        processing = settings.number("processing");
        Properties config = settings.kafka();
        gaps = "read_committed".equals(config.getProperty("isolation.level")) || settings.flag("transactional");
        config.put(CommitLog.LOG, log);
        config.put(CommitLog.NAME, name);
        config.setProperty("interceptor.classes", CommitLog.class.getName());
        consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public void prepare() {
        if (settings.flag("committed")) {
            log.add("committed_readers", EventLog.now(), name, group);
        }
    }

    @Override
    public void run(long zero) {
        long stop = settings.number("stop");
        for (long left = zero + settings.number("start") - EventLog.now(); left > 0 && !ended;) {
            LockSupport.parkNanos(Math.min(left, 50_000) * 1_000);
            left = zero + settings.number("start") - EventLog.now();
        }
        try {
            subscribe();
            while (!ended && (stop < 0 || EventLog.now() < zero + stop)) {
                try {
                    take(consumer.poll(POLL));
                } catch (WakeupException woken) {
                    break;
                } catch (ApiException error) {
                    System.err.println(name + ": " + error);
                }
            }
        } finally {
            leaving = true;
            consumer.close(CLOSE);
        }
    }

    private void subscribe() {
        List<String> topics = List.of(settings.text("topics").split(","));
        if (group.isEmpty()) {
            Set<TopicPartition> all = topics.stream()
                    .flatMap(topic -> consumer.partitionsFor(topic).stream())
                    .map(found -> new TopicPartition(found.topic(), found.partition()))
                    .collect(Collectors.toSet());
            consumer.assign(all);
            onPartitionsAssigned(all);
        } else if (!settings.text("pattern").isEmpty()) {
            consumer.subscribe(Pattern.compile(settings.text("pattern")), this);
        } else {
            consumer.subscribe(topics, this);
        }
    }

    private void take(ConsumerRecords<byte[], byte[]> records) {
        long now = EventLog.now();
        for (TopicPartition partition : records.partitions()) {
            Read read = null;
            for (ConsumerRecord<byte[], byte[]> record : records.records(partition)) {
                jump(partition, record.offset(), now);
                Payload named = Payload.of(record.value(), record.headers().toArray());
                next.put(partition, record.offset() + 1);
                if (named == null) {
                    continue;
                }
                int epoch = record.leaderEpoch().orElse(-1);
                if (read == null || !read.takes(record.offset(), named, epoch)) {
                    write(now, partition, read);
                    read = new Read(record.offset(), named, epoch);
                }
                read.count++;
            }
            write(now, partition, read);
        }
        reach();
        if (!records.isEmpty()) {
            LockSupport.parkNanos(processing * 1_000 * records.count());
            commit();
        }
    }

    /** Notes the positions, which are past markers and aborted records, too. */
    private void reach() {
        synchronized (reached) {
            for (TopicPartition partition : next.keySet()) {
                try {
                    reached.put(partition, consumer.position(partition, Duration.ZERO));
                } catch (TimeoutException unknown) {
                    reached.put(partition, next.get(partition));
                }
            }
        }
    }

    private void commit() {
        try {
            if (commits.equals("sync")) {
                consumer.commitSync();
            } else if (commits.equals("async")) {
                consumer.commitAsync();
            }
        } catch (KafkaException error) {
            for (Map.Entry<TopicPartition, Long> each : next.entrySet()) {
                String code = error instanceof ApiException ? Errors.forException(error).name() : "NONE";
                log.add("commits", EventLog.now(), name, group, each.getKey().topic(), each.getKey().partition(),
                        each.getValue(), -1, code);
            }
        }
    }

    /** Notes a position that moved past what was read: a reset. Markers of transactions leave gaps as well. */
    private void jump(TopicPartition partition, long offset, long now) {
        Long expected = next.get(partition);
        if (expected != null && (offset < expected || offset > expected && !gaps)) {
            moved(now, partition, expected, offset, "reset");
        }
    }

    private void moved(long now, TopicPartition partition, long before, long offset, String reason) {
        log.add("positions", now, name, group, partition.topic(), partition.partition(), before, offset, reason);
    }

    private void write(long now, TopicPartition partition, Read read) {
        if (read != null) {
            // The fetch response's high watermark and broker stay inside the client.
            log.add("reads", now, name, group, partition.topic(), partition.partition(), read.base,
                    read.base + read.count - 1, read.epoch, read.producer, read.first, read.count, -1, -1);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> added) {
        Map<TopicPartition, OffsetAndMetadata> known =
                group.isEmpty() || added.isEmpty() ? Map.of() : consumer.committed(new HashSet<>(added));
        long now = EventLog.now();
        for (TopicPartition partition : added) {
            long position = consumer.position(partition);
            next.put(partition, position);
            moved(now, partition, -1, position, known.get(partition) == null ? "reset" : "committed");
        }
        if (!group.isEmpty()) {
            String member = consumer.groupMetadata().memberId();
            log.add("assignments", now, name, group, member, consumer.groupMetadata().generationId(),
                    sorted(consumer.assignment()));
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> lost) {
        // Giving up all at the end is no step of a rebalance, and simulated runs have no row of it.
        if (!lost.isEmpty() && !leaving) {
            log.add("revocations", EventLog.now(), name, group, consumer.groupMetadata().generationId(), sorted(lost));
        }
        lost.forEach(next::remove);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> lost) {
        if (!lost.isEmpty()) {
            log.add("revocations", EventLog.now(), name, group, -1, sorted(lost));
        }
        lost.forEach(next::remove);
    }

    private static String sorted(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().collect(Collectors.joining(","));
    }

    @Override
    public String status() {
        StringBuilder text = new StringBuilder("consumer\t" + name + "\t" + group);
        synchronized (reached) {
            reached.forEach((partition, offset) -> text.append('\t').append(partition).append('=').append(offset));
        }
        return text.toString();
    }

    @Override
    public void close() {
        ended = true;
        consumer.wakeup();
    }

    /** Consecutive records of one producer, as they were read. */
    private static final class Read {
        final long base;
        final int producer;
        final long first;
        final int epoch;
        int count;

        Read(long base, Payload named, int epoch) {
            this.base = base;
            this.producer = named.producer();
            this.first = named.number();
            this.epoch = epoch;
        }

        boolean takes(long offset, Payload named, int of) {
            return offset == base + count && named.producer() == producer && named.number() == first + count
                    && of == epoch;
        }
    }
}
