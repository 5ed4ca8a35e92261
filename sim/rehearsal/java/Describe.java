import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Describes a topic of a running cluster in a line: brokers, partitions, replicas, records; a 0 alone if it is not there. */
public final class Describe {
    private Describe() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // What Kafka logs is no answer.
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0],
                "default.api.timeout.ms", 15_000, "request.timeout.ms", 10_000);
        try (Admin admin = Admin.create(config)) {
            int brokers = admin.describeCluster().nodes().get().size();
            TopicDescription topic = admin.describeTopics(List.of(arguments[1])).allTopicNames().get().get(arguments[1]);
            List<TopicPartition> partitions = topic.partitions().stream()
                    .map(each -> new TopicPartition(topic.name(), each.partition())).toList();
            int replicas = topic.partitions().stream().mapToInt(each -> each.replicas().size()).min().orElse(1);
            long records = total(admin, partitions, OffsetSpec.latest()) - total(admin, partitions, OffsetSpec.earliest());
            answers.println(brokers + "\t" + partitions.size() + "\t" + replicas + "\t" + records);
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                answers.println("0");
            } else {
                System.err.println(error.getCause());
                System.err.flush();
                Runtime.getRuntime().halt(1);
            }
        }
        answers.flush();
        Runtime.getRuntime().halt(0);
    }

    private static long total(Admin admin, List<TopicPartition> partitions, OffsetSpec spec) throws Exception {
        ListOffsetsResult found = admin.listOffsets(partitions.stream().collect(Collectors.toMap(each -> each, each -> spec)));
        return found.all().get().values().stream().mapToLong(ListOffsetsResult.ListOffsetsResultInfo::offset).sum();
    }
}
