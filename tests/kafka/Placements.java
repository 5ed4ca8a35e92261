import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.metadata.placement.ClusterDescriber;
import org.apache.kafka.metadata.placement.PlacementSpec;
import org.apache.kafka.metadata.placement.StripedReplicaPlacer;
import org.apache.kafka.metadata.placement.UsableBroker;
import java.util.Iterator;

/** Prints where Apache Kafka's own placer puts replicas, for draws that anybody can repeat.
 *
 *  Each argument is one case: seed:partitions:replicas:broker/rack/fenced,... (rack may be empty). */
public class Placements {
    /** Draws are the fraction state / 2^31 of the bound; one step of the state for each draw. */
    static final class Repeatable extends Random {
        private long state;

        Repeatable(long seed) {
            state = seed;
        }

        @Override
        public int nextInt(int bound) {
            state = (state * 1103515245L + 12345L) & 0x7fffffffL;
            return (int) (state * bound >> 31);
        }
    }

    public static void main(String[] cases) {
        for (String one : cases) {
            String[] parts = one.split(":");
            List<UsableBroker> brokers = new ArrayList<>();
            for (String listed : parts[3].split(",")) {
                String[] broker = listed.split("/");
                Optional<String> rack = broker[1].isEmpty() ? Optional.empty() : Optional.of(broker[1]);
                brokers.add(new UsableBroker(Integer.parseInt(broker[0]), rack, broker[2].equals("1")));
            }
            ClusterDescriber cluster = new ClusterDescriber() {
                @Override
                public Iterator<UsableBroker> usableBrokers() {
                    return brokers.iterator();
                }

                @Override
                public Uuid defaultDir(int broker) {
                    return Uuid.ZERO_UUID;
                }
            };
            PlacementSpec spec = new PlacementSpec(0, Integer.parseInt(parts[1]), Short.parseShort(parts[2]));
            StripedReplicaPlacer placer = new StripedReplicaPlacer(new Repeatable(Long.parseLong(parts[0])));
            StringBuilder line = new StringBuilder();
            placer.place(spec, cluster).assignments().forEach(a -> line.append(a.replicas()).append(';'));
            System.out.println(line.toString().replace(" ", ""));
        }
    }
}
