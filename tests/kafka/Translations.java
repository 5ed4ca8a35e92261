package org.apache.kafka.connect.mirror;

import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Prints what Apache Kafka's own mirror makes of offsets, one case an argument:
 *  offset.lag.max:upstream/downstream/count,...:upstream,... (records that are mirrored, questions).
 *  A line has the syncs that are told, and the answers; x where there is none. */
public class Translations {
    public static void main(String[] cases) {
        TopicPartition partition = new TopicPartition("orders", 0);
        for (String one : cases) {
            String[] parts = one.split(":");
            OffsetSyncWriter.PartitionState state =
                new OffsetSyncWriter.PartitionState(Long.parseLong(parts[0]));
            OffsetSyncStore store = new OffsetSyncStore();
            store.readToEnd = true;
            StringBuilder line = new StringBuilder();
            for (String run : parts[1].split(",")) {
                String[] said = run.split("/");
                for (long at = 0; at < Long.parseLong(said[2]); at++) {
                    long upstream = Long.parseLong(said[0]) + at;
                    long downstream = Long.parseLong(said[1]) + at;
                    if (!state.update(upstream, downstream)) {
                        continue;
                    }
                    state.reset();
                    OffsetSync sync = new OffsetSync(partition, upstream, downstream);
                    store.handleRecord(new ConsumerRecord<>(
                        "syncs", 0, 0L, sync.recordKey(), sync.recordValue()));
                    line.append(upstream).append('/').append(downstream).append(',');
                }
            }
            line.append(':');
            for (String asked : parts[2].split(",")) {
                OptionalLong found =
                    store.translateDownstream("billing", partition, Long.parseLong(asked));
                line.append(found.isPresent() ? String.valueOf(found.getAsLong()) : "x").append(',');
            }
            System.out.println(line);
        }
    }
}
