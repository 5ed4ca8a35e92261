import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Prints what the server-side assignors of Apache Kafka's group coordinator give to whom.
 *
 *  Lines of standard input: assignor;topic id=partitions,...;member:topic id+...:topic id.partition+...,...
 *  A line of the answer: member=topic id.partition+...;... with members and partitions sorted. */
public class ServerAssignments {
    public static void main(String[] args) throws Exception {
        try (var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                System.out.println(answer(line));
            }
        }
    }

    private static String answer(String line) {
        String[] parts = line.split(";", -1);
        Map<Uuid, Integer> counts = new LinkedHashMap<>();
        for (String topic : parts[1].split(",")) {
            String[] pair = topic.split("=");
            counts.put(Uuid.fromString(pair[0]), Integer.parseInt(pair[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        Set<Set<Uuid>> subscriptions = new HashSet<>();
        for (String member : parts[2].split(",")) {
            String[] fields = member.split(":", -1);
            Set<Uuid> subscribed = new HashSet<>();
            for (String topic : words(fields[1])) subscribed.add(Uuid.fromString(topic));
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            for (String place : words(fields[2])) {
                String[] pair = place.split("\\.");
                Uuid topic = Uuid.fromString(pair[0]);
                // Not computeIfAbsent, which puts a key before the others of its bucket.
                owned.putIfAbsent(topic, new HashSet<>());
                owned.get(topic).add(Integer.parseInt(pair[1]));
                owners.computeIfAbsent(topic, t -> new HashMap<>())
                    .put(Integer.parseInt(pair[1]), fields[0]);
            }
            subscriptions.add(subscribed);
            members.put(fields[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), subscribed,
                new Assignment(Collections.unmodifiableMap(owned))));
        }
        SubscribedTopicDescriber describer = (SubscribedTopicDescriber) java.lang.reflect.Proxy
            .newProxyInstance(ServerAssignments.class.getClassLoader(),
                new Class<?>[] {SubscribedTopicDescriber.class}, (proxy, method, given) ->
                    method.getName().equals("numPartitions")
                        ? (Object) counts.getOrDefault(given[0], -1) : Set.of());
        SubscriptionType type = subscriptions.size() == 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        ConsumerGroupPartitionAssignor assignor =
            parts[0].equals("range") ? new RangeAssignor() : new UniformAssignor();
        GroupAssignment result = assignor.assign(new GroupSpecImpl(members, type, owners), describer);
        StringBuilder text = new StringBuilder();
        new TreeMap<>(result.members()).forEach((member, assignment) -> {
            Set<String> places = new TreeSet<>();
            assignment.partitions().forEach((topic, numbers) ->
                numbers.forEach(number -> places.add(topic + "." + number)));
            text.append(member).append('=').append(String.join("+", places)).append(';');
        });
        return text.toString();
    }

    private static String[] words(String text) {
        return text.isEmpty() ? new String[0] : text.split("\\+");
    }
}
