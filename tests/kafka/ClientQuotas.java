import java.net.InetAddress;
import java.util.Optional;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity.ConfigEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientQuotaManager.ClientIdEntity;
import org.apache.kafka.server.quota.ClientQuotaManager.UserEntity;
import org.apache.kafka.server.quota.QuotaType;

/** Prints what Apache Kafka's own quota manager says, one case an argument:
 *  samples:window s:step,... A step is set/USER/CLIENT/BOUND, remove/USER/CLIENT (- for none,
 *  * for the default), record/USER/CLIENT/VALUE/AT or burst/USER/CLIENT; the last two print. */
public class ClientQuotas {
    static Optional<ConfigEntity> user(String name) {
        if (name.equals("-")) return Optional.empty();
        return Optional.of(name.equals("*") ? ClientQuotaManager.DEFAULT_USER_ENTITY : new UserEntity(name));
    }

    static Optional<ConfigEntity> client(String name) {
        if (name.equals("-")) return Optional.empty();
        return Optional.of(name.equals("*") ? ClientQuotaManager.DEFAULT_USER_CLIENT_ID : new ClientIdEntity(name));
    }

    static Session session(String name) throws Exception {
        return new Session(new KafkaPrincipal("User", name), InetAddress.getLoopbackAddress());
    }

    public static void main(String[] cases) throws Exception {
        for (String one : cases) {
            String[] parts = one.split(":");
            ClientQuotaManagerConfig config =
                new ClientQuotaManagerConfig(Integer.parseInt(parts[0]), Integer.parseInt(parts[1]));
            ClientQuotaManager manager =
                new ClientQuotaManager(config, new Metrics(), QuotaType.PRODUCE, Time.SYSTEM, "");
            StringBuilder line = new StringBuilder("case");
            for (String step : parts[2].split(",")) {
                String[] said = step.split("/");
                if (said[0].equals("set")) {
                    Quota bound = Quota.upperBound(Double.parseDouble(said[3]));
                    manager.updateQuota(user(said[1]), client(said[2]), Optional.of(bound));
                } else if (said[0].equals("remove")) {
                    manager.updateQuota(user(said[1]), client(said[2]), Optional.empty());
                } else if (said[0].equals("burst")) {
                    double burst = manager.maxValueInQuotaWindow(session(said[1]), said[2]);
                    line.append(',').append((long) Math.min(burst, 1e18));
                } else {
                    int wait = manager.maybeRecordAndGetThrottleTimeMs(
                        session(said[1]), said[2], Double.parseDouble(said[3]), Long.parseLong(said[4]));
                    line.append(',').append(wait);
                }
            }
            System.out.println(line);
            manager.shutdown();
        }
        System.exit(0);
    }
}
