import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer that sends the records of a schedule at their instants. */
final class ProducerTask implements Task {
    private final Settings settings;
    private final KafkaProducer<byte[], byte[]> producer;
    private final Outcomes outcomes;
    private final Transactions transactions;
    private final int index;
    private final String topic;
    private final byte[] noise;
    private final AtomicLong open = new AtomicLong();
    private volatile boolean sending = true;
    private volatile boolean ended;

    ProducerTask(Settings settings, EventLog log) {
        this.settings = settings;
        index = (int) settings.number("index");
        topic = settings.text("topic");
        Properties config = settings.kafka();
        boolean retries = !"0".equals(config.getProperty("retries"));
        String name = settings.text("name");
        outcomes = new Outcomes(log, name, index, topic, (int) settings.number("acks"), retries);
        producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        transactions = settings.flag("transactional") ? new Transactions(settings, producer, log) : null;
        noise = new byte[(int) settings.number("noise")];
        new Random(index).nextBytes(noise);
    }

    @Override
    public void prepare() {
        if (transactions != null) {
            producer.initTransactions();
        }
        producer.partitionsFor(topic);
    }

    @Override
    public void run(long zero) throws Exception {
        try (Schedule schedule = new Schedule(Path.of(settings.text("schedule")))) {
            long number = 0;
            for (Schedule.Entry entry = schedule.next(); entry != null && !ended; entry = schedule.next()) {
                waitUntil(zero + entry.at());
                if (ended || transactions != null && !transactions.before(zero + entry.at())) {
                    break;
                }
                send(number++, zero + entry.at(), entry);
                if (transactions != null) {
                    transactions.after();
                }
            }
            if (transactions != null && !ended) {
                transactions.end();
            }
        } finally {
            sending = false;
            producer.flush();
        }
    }

    private void send(long number, long intended, Schedule.Entry entry) {
        byte[] key = entry.key() < 0 ? null : "key-%08d".formatted(entry.key()).getBytes(StandardCharsets.US_ASCII);
        byte[] named = Payload.encode(index, number, intended, Math.max(entry.size(), Payload.BYTES), noise);
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, key, entry.size() < 0 ? null : named);
        if (entry.size() < 0) {
            record.headers().add(Payload.HEADER, named);
        }
        for (int header = 0; header < settings.number("headers"); header++) {
            record.headers().add("h" + header, new byte[(int) settings.number("header.size")]);
        }
        int size = named.length + (key == null ? 0 : key.length);
        Outcomes.Sent sent = new Outcomes.Sent(number, intended, EventLog.now(), size);
        open.incrementAndGet();
        Callback callback = (metadata, failure) -> {
            if (transactions != null) {
                transactions.note(sent.number(), metadata);
            }
            outcomes.add(sent, metadata, failure);
            open.decrementAndGet();
        };
        try {
            producer.send(record, callback);
        } catch (KafkaException failure) {
            callback.onCompletion(null, failure);
            if (transactions != null) {
                transactions.failed(failure);
            }
        }
    }

    private void waitUntil(long instant) {
        for (long left = instant - EventLog.now(); left > 0 && !ended; left = instant - EventLog.now()) {
            LockSupport.parkNanos(Math.min(left, 50_000) * 1_000);
        }
    }

    @Override
    public String status() {
        outcomes.write();
        return "producer\t" + settings.text("name") + "\t" + (sending ? 1 : 0) + "\t" + open.get() + outcomes.ends();
    }

    @Override
    public void close() {
        ended = true;
        producer.close(Duration.ZERO);
        if (transactions != null) {
            transactions.close();
        }
        outcomes.write();
    }
}
