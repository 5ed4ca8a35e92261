import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Prints what Apache Kafka's own assignors make of each line of the standard input.
 *
 *  A line is assignor|topic=racks/racks;...|member;... with racks as letters, one list for each
 *  partition, and a member as id,instance,rack,generation,topics,owned,remembered,generation, where
 *  topics are letters and partitions topic:number, both separated by '+'. */
public class Assignments {
    static ConsumerPartitionAssignor assignor(String name) {
        switch (name) {
            case "range": return new RangeAssignor();
            case "roundrobin": return new RoundRobinAssignor();
            case "sticky": return new StickyAssignor();
            default: return new CooperativeStickyAssignor();
        }
    }

    static List<TopicPartition> partitions(String listed) {
        List<TopicPartition> found = new ArrayList<>();
        if (!listed.isEmpty())
            for (String one : listed.split("\\+")) {
                String[] parts = one.split(":");
                found.add(new TopicPartition(parts[0], Integer.parseInt(parts[1])));
            }
        return found;
    }

    static Cluster cluster(String topics) {
        Map<String, Node> nodes = new TreeMap<>();
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : topics.split(";")) {
            String[] named = topic.split("=", -1);
            String[] racks = named[1].split("/", -1);
            for (int number = 0; number < racks.length; number++) {
                List<Node> replicas = new ArrayList<>();
                for (char rack : racks[number].toCharArray()) {
                    String name = String.valueOf(rack);
                    replicas.add(nodes.computeIfAbsent(name, r -> new Node(r.charAt(0), "host", 9092, r)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(named[0], number, all.length == 0 ? null : all[0], all, all));
            }
        }
        return new Cluster("cluster", nodes.values(), infos, Collections.emptySet(), Collections.emptySet());
    }

    static Subscription subscription(String name, String[] said) {
        List<String> topics = Arrays.asList(said[4].split("\\+"));
        ConsumerPartitionAssignor own = assignor(name);
        int last = Integer.parseInt(said[7]);
        if (last >= 0)
            own.onAssignment(new Assignment(partitions(said[6])),
                new ConsumerGroupMetadata("group", last, said[0], Optional.empty()));
        Subscription subscription = new Subscription(topics, own.subscriptionUserData(new HashSet<>(topics)),
            partitions(said[5]), Integer.parseInt(said[3]), said[2].isEmpty() ? Optional.empty() : Optional.of(said[2]));
        if (!said[1].isEmpty())
            subscription.setGroupInstanceId(Optional.of(said[1]));
        return subscription;
    }

    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\\|");
            Map<String, Subscription> subscriptions = new HashMap<>();
            for (String member : parts[2].split(";")) {
                String[] said = member.split(",", -1);
                subscriptions.put(said[0], subscription(parts[0], said));
            }
            Map<String, Assignment> made = new TreeMap<>(assignor(parts[0])
                .assign(cluster(parts[1]), new GroupSubscription(subscriptions)).groupAssignment());
            StringBuilder told = new StringBuilder();
            made.forEach((member, assignment) -> {
                List<String> names = new ArrayList<>();
                assignment.partitions().forEach(p -> names.add(p.topic() + ":" + p.partition()));
                Collections.sort(names);
                told.append(member).append('=').append(String.join("+", names)).append(';');
            });
            System.out.println("> " + told);
        }
    }
}
