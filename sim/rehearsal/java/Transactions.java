import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;

/** Transactions of one producer: cut by a number of records or by time, some aborted by the application. */
final class Transactions {
    private static final int ATTEMPTS = 20;

    private final KafkaProducer<byte[], byte[]> producer;
    private final EventLog log;
    private final Settings settings;
    private final Random chance;
    private final long records;
    private final long every;
    private final Map<Integer, TreeMap<Long, Long>> sent = new TreeMap<>();
    private boolean open;
    private long transaction = -1;
    private long begun;
    private long count;
    private KafkaException failure;

    Transactions(Settings settings, KafkaProducer<byte[], byte[]> producer, EventLog log) {
        this.settings = settings;
        this.producer = producer;
        this.log = log;
        chance = new Random(settings.number("seed"));
        records = settings.number("transaction.records");
        every = settings.number("transaction.every");
    }

    /** Begins a transaction if none is open, and ends one whose time is up; false if it can send no more. */
    boolean before(long at) {
        if (open && every > 0 && at - begun >= every) {
            end();
        }
        if (isFatal()) {
            return false;
        }
        if (!open) {
            producer.beginTransaction();
            open = true;
            transaction++;
            begun = EventLog.now();
            count = 0;
        }
        return true;
    }

    /** Counts a record, and ends the transaction if it is whole. */
    void after() {
        count++;
        if (records > 0 && count >= records || failure != null) {
            end();
        }
    }

    void failed(KafkaException error) {
        failure = error;
    }

    /** Notes the partition of a record of the transaction that is open. */
    synchronized void note(long number, RecordMetadata metadata) {
        if (metadata != null && metadata.partition() >= 0) {
            sent.computeIfAbsent(metadata.partition(), place -> new TreeMap<>()).put(number, number);
        }
    }

    /** Commits or aborts; writes the outcome. */
    void end() {
        if (!open) {
            return;
        }
        boolean aborts = failure != null || chance.nextInt(1_000_000) < settings.number("transaction.abort");
        String outcome = "unknown";
        String error = "NONE";
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            try {
                if (aborts) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
                outcome = aborts ? "aborted" : "committed";
                failure = null;
                break;
            } catch (TimeoutException timeout) {
                error = "REQUEST_TIMED_OUT"; // The call may be made again, and says what became of it.
            } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
                failure = fenced;
                outcome = "fenced";
                error = Errors.forException(fenced).name();
                break;
            } catch (KafkaException other) {
                error = other instanceof ApiException ? Errors.forException(other).name() : "NONE";
                if (aborts) {
                    failure = other;
                    break;
                }
                aborts = true;
            }
        }
        write(outcome, outcome.equals("committed") ? "NONE" : error);
        open = false;
    }

    private synchronized void write(String outcome, String error) {
        String name = settings.text("name");
        String id = settings.text("config.transactional.id");
        long now = EventLog.now();
        for (Map.Entry<Integer, TreeMap<Long, Long>> place : sent.entrySet()) {
            long first = -1;
            long last = -2;
            for (long number : place.getValue().keySet()) {
                if (number != last + 1) {
                    record(now, name, id, place.getKey(), first, last);
                    first = number;
                }
                last = number;
            }
            record(now, name, id, place.getKey(), first, last);
        }
        sent.clear();
        log.add("transaction_outcomes", now, name, id, transaction, -1, -1, begun, outcome, error, count);
    }

    private void record(long now, String name, String id, int partition, long first, long last) {
        if (first >= 0) {
            log.add("transaction_records", now, name, id, transaction, settings.text("index"),
                    settings.text("topic"), partition, first, last);
        }
    }

    private boolean isFatal() {
        return failure != null && !open;
    }

    /** Writes a transaction that is open when the run ends. */
    void close() {
        if (open) {
            write("unknown", "NONE");
            open = false;
        }
    }
}
