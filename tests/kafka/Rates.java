import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SimpleRate;

/** Prints what Apache Kafka's own rates say, one case an argument: samples:window ms:at/value,...
 *  After each value: window and rate in millionths of both kinds of rate. */
public class Rates {
    public static void main(String[] cases) {
        for (String one : cases) {
            String[] parts = one.split(":");
            MetricConfig config = new MetricConfig()
                .samples(Integer.parseInt(parts[0]))
                .timeWindow(Long.parseLong(parts[1]), TimeUnit.MILLISECONDS);
            Rate simple = new SimpleRate();
            Rate full = new Rate();
            StringBuilder line = new StringBuilder();
            for (String event : parts[2].split(",")) {
                String[] said = event.split("/");
                long at = Long.parseLong(said[0]);
                for (Rate rate : new Rate[] {simple, full}) {
                    rate.record(config, Double.parseDouble(said[1]), at);
                    line.append(rate.windowSize(config, at)).append('/');
                    line.append(Math.round(rate.measure(config, at) * 1e6)).append(',');
                }
            }
            System.out.println(line);
        }
    }
}
