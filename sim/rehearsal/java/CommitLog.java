import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Writes down the offsets that a consumer's coordinator has acknowledged, whoever committed them. */
public final class CommitLog implements ConsumerInterceptor<byte[], byte[]> {
    static final String LOG = "logquake.log";
    static final String NAME = "logquake.name";

    private EventLog log;
    private String name;
    private String group;

    @Override
    public void configure(Map<String, ?> config) {
        log = (EventLog) config.get(LOG);
        name = (String) config.get(NAME);
        group = String.valueOf(config.get("group.id"));
    }

    @Override
    public ConsumerRecords<byte[], byte[]> onConsume(ConsumerRecords<byte[], byte[]> records) {
        return records;
    }

    @Override
    public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        long now = EventLog.now();
        offsets.forEach((partition, offset) -> log.add("commits", now, name, group, partition.topic(),
                partition.partition(), offset.offset(), -1, "NONE"));
    }

    @Override
    public void close() {}
}
