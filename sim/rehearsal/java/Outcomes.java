import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.BufferExhaustedException;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TransactionAbortedException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Outcomes of one producer's records as rows of client_batches: a row for each run of consecutive numbers whose
 * outcomes came one after the other, at consecutive offsets.
 */
final class Outcomes {
    private static final int ROW_MAX = 10_000;
    private static final int BATCH_OVERHEAD = 61;
    private static final int RECORD_OVERHEAD = 8;
    /** Outcomes of one batch follow each other within this time, in microseconds; the callbacks are a loop. */
    private static final long NEXT = 200;
    /** And all of them within this time: they have one instant, that of the first. */
    private static final long TOGETHER = 5_000;

    private final EventLog log;
    private final String producer;
    private final int index;
    private final String topic;
    private final int acks;
    private final boolean retries;
    private final List<Long> intended = new ArrayList<>();
    private final Map<String, Long> ends = new TreeMap<>();
    private long at;
    private long latest;
    private int partition;
    private long first;
    private long bytes;
    private long created;
    private long base;
    private String outcome = "";
    private String error = "";

    Outcomes(EventLog log, String producer, int index, String topic, int acks, boolean retries) {
        this.log = log;
        this.producer = producer;
        this.index = index;
        this.topic = topic;
        this.acks = acks;
        this.retries = retries;
    }

    /** A record that was sent: its number, and the instants at which it was meant to be and was sent. */
    record Sent(long number, long intended, long created, int size) {}

    synchronized void add(Sent sent, RecordMetadata metadata, Exception failure) {
        long now = EventLog.now();
        int place = metadata == null ? -1 : metadata.partition();
        long offset = metadata != null && failure == null && metadata.hasOffset() ? metadata.offset() : -1;
        boolean queued = failure == null || place >= 0 && !(failure instanceof BufferExhaustedException);
        String result = failure == null ? "ok" : isCertain(failure, queued) ? "failed" : "unknown";
        String name = failure == null ? "NONE" : nameOf(failure, queued);
        if (offset >= 0) {
            ends.merge(topic + "-" + place, offset + 1, Math::max);
        }
        long count = intended.size();
        boolean joins = count > 0 && count < ROW_MAX && place == partition && sent.number() == first + count
                && sent.created() <= at && now - latest < NEXT && now - at < TOGETHER
                && result.equals(outcome) && name.equals(error)
                && (offset < 0 ? base < 0 : offset == base + count);
        if (!joins) {
            write();
            partition = place;
            first = sent.number();
            created = sent.created();
            base = offset;
            outcome = result;
            error = name;
            bytes = BATCH_OVERHEAD;
            at = now;
        }
        latest = now;
        intended.add(sent.intended());
        bytes += sent.size() + RECORD_OVERHEAD;
    }

    /** Offsets behind the last acknowledged record of each partition, as fields. */
    synchronized String ends() {
        StringBuilder text = new StringBuilder();
        ends.forEach((name, offset) -> text.append('\t').append(name).append('=').append(offset));
        return text.toString();
    }

    /** Writes the row that may still grow. */
    synchronized void write() {
        if (intended.isEmpty()) {
            return;
        }
        StringBuilder latencies = new StringBuilder();
        for (long meant : intended) {
            latencies.append(latencies.isEmpty() ? "" : ",").append(Math.min(at - meant, Integer.MAX_VALUE));
        }
        // Attempts, and who answered, the client's interface does not say: they are written as unknown.
        log.add("client_batches", at, producer, index, topic, partition, first, intended.size(), bytes, acks,
                created, -1, -1, 0, outcome, error, base, -1, -1, latencies);
        intended.clear();
    }

    /** True if a record that failed so is certainly in no log: an earlier attempt may have been. */
    private boolean isCertain(Exception failure, boolean queued) {
        if (!queued || failure instanceof TransactionAbortedException) {
            return true;
        }
        if (failure instanceof TimeoutException || failure instanceof OutOfOrderSequenceException) {
            return false;
        }
        if (failure instanceof RetriableException) {
            return !retries && switch (Errors.forException(failure)) {
                case NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC_OR_PARTITION -> true;
                default -> false;
            };
        }
        return failure instanceof ApiException;
    }

    private static String nameOf(Exception failure, boolean queued) {
        if (failure instanceof BufferExhaustedException) {
            return "BUFFER_EXHAUSTED";
        }
        if (failure instanceof TransactionAbortedException) {
            return "TRANSACTION_ABORTED";
        }
        if (failure instanceof ApiException) {
            return Errors.forException(failure).name();
        }
        return queued ? "NONE" : "NEVER_SENT"; // The producer ended with the record in its hands.
    }
}
