import java.net.InetAddress;
import java.util.LinkedHashSet;
import java.util.Set;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.replica.ClientMetadata;
import org.apache.kafka.common.replica.PartitionView;
import org.apache.kafka.common.replica.RackAwareReplicaSelector;
import org.apache.kafka.common.replica.ReplicaView;
import org.apache.kafka.common.security.auth.KafkaPrincipal;

/** Prints which replica Apache Kafka's own selector chooses, one case an argument:
 *  rack:id/rack/end/since,... (the leader comes first; since when it was caught up, in ms ago). */
public class Selections {
    public static void main(String[] cases) {
        for (String one : cases) {
            String[] parts = one.split(":");
            Set<ReplicaView> replicas = new LinkedHashSet<>();
            ReplicaView leader = null;
            for (String listed : parts[1].split(",")) {
                String[] said = listed.split("/");
                Node node = new Node(Integer.parseInt(said[0]), "host", 9092, said[1]);
                ReplicaView view = new ReplicaView.DefaultReplicaView(
                    node, Long.parseLong(said[2]), Long.parseLong(said[3]));
                leader = leader == null ? view : leader;
                replicas.add(view);
            }
            ClientMetadata client = new ClientMetadata.DefaultClientMetadata(
                parts[0], "client", InetAddress.getLoopbackAddress(), KafkaPrincipal.ANONYMOUS, "PLAINTEXT");
            PartitionView view = new PartitionView.DefaultPartitionView(replicas, leader);
            System.out.println(new RackAwareReplicaSelector()
                .select(new TopicPartition("orders", 0), client, view).get().endpoint().id());
        }
    }
}
