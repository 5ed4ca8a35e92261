import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder;

/** Prints how Apache Kafka's group coordinator moves a member towards its target assignment.
 *
 *  Lines of standard input, of one topic: state;epoch;previous;assigned;pending;target epoch;target;
 *  taken by others;owned (or -). Numbers are joined by commas. The answer:
 *  state;epoch;previous;assigned;pending. */
public class Reconciliations {
    private static final Uuid TOPIC = new Uuid(7, 7);

    public static void main(String[] args) throws Exception {
        try (var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(answer(line.split(";", -1)));
            }
        }
    }

    private static String answer(String[] given) {
        ConsumerGroupMember member = new ConsumerGroupMember.Builder("m")
            .setState(MemberState.fromValue(Byte.parseByte(given[0])))
            .setMemberEpoch(Integer.parseInt(given[1]))
            .setPreviousMemberEpoch(Integer.parseInt(given[2]))
            .setSubscribedTopicNames(List.of("t"))
            .setAssignedPartitions(epochs(given[3]))
            .setPartitionsPendingRevocation(epochs(given[4]))
            .build();
        Set<Integer> others = numbers(given[7]);
        Set<Integer> own = numbers(given[3]);
        own.addAll(numbers(given[4]));
        List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = null;
        if (!given[8].equals("-")) {
            owned = List.of(new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                .setTopicId(TOPIC).setPartitions(new ArrayList<>(numbers(given[8]))));
        }
        Set<Integer> target = numbers(given[6]);
        ConsumerGroupMember after = new CurrentAssignmentBuilder(member)
            .withMetadataImage(image())
            .withTargetAssignment(Integer.parseInt(given[5]),
                new Assignment(target.isEmpty() ? Map.of() : Map.of(TOPIC, target)))
            .withCurrentPartitionEpoch((topic, number) ->
                others.contains(number) || own.contains(number) ? 1 : -1)
            .withOwnedTopicPartitions(owned)
            .build();
        return after.state().value() + ";" + after.memberEpoch() + ";" + after.previousMemberEpoch()
            + ";" + text(after.assignedPartitions()) + ";" + text(after.partitionsPendingRevocation());
    }

    private static CoordinatorMetadataImage image() {
        ClassLoader loader = Reconciliations.class.getClassLoader();
        Object topic = java.lang.reflect.Proxy.newProxyInstance(loader,
            new Class<?>[] {CoordinatorMetadataImage.TopicMetadata.class}, (proxy, method, with) ->
                method.getName().equals("id") ? TOPIC
                    : method.getName().equals("name") ? "t" : (Object) 100);
        return (CoordinatorMetadataImage) java.lang.reflect.Proxy.newProxyInstance(loader,
            new Class<?>[] {CoordinatorMetadataImage.class}, (proxy, method, with) ->
                method.getName().equals("topicMetadata") ? Optional.of(topic) : null);
    }

    private static Map<Uuid, Map<Integer, Integer>> epochs(String text) {
        Map<Integer, Integer> found = new HashMap<>();
        for (int number : numbers(text)) found.put(number, 1);
        return found.isEmpty() ? Map.of() : Map.of(TOPIC, found);
    }

    private static Set<Integer> numbers(String text) {
        Set<Integer> found = new HashSet<>();
        if (!text.isEmpty()) for (String word : text.split(",")) found.add(Integer.parseInt(word));
        return found;
    }

    private static String text(Map<Uuid, Map<Integer, Integer>> partitions) {
        List<String> words = new ArrayList<>();
        for (int n : new TreeSet<>(partitions.getOrDefault(TOPIC, Map.of()).keySet())) words.add("" + n);
        return String.join(",", words);
    }
}
