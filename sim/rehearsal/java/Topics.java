import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Makes topics: a line of the standard input for each, with name, partitions, replicas, placement and settings. */
public final class Topics {
    private Topics() {}

    public static void main(String[] arguments) throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
            topics.add(topic(line.split("\t", -1)));
        }
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0], "default.api.timeout.ms", 60_000);
        try (Admin admin = Admin.create(config)) {
            admin.createTopics(topics).all().get();
        } catch (ExecutionException error) {
            System.err.println(error.getCause());
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private static NewTopic topic(String[] words) {
        NewTopic topic = words[3].isEmpty()
                ? new NewTopic(words[0], Optional.of(Integer.parseInt(words[1])),
                        Optional.of(Short.parseShort(words[2])))
                : new NewTopic(words[0], placement(words[3]));
        Map<String, String> config = new HashMap<>();
        for (int place = 4; place < words.length; place++) {
            String[] pair = words[place].split("=", 2);
            config.put(pair[0], pair[1]);
        }
        return topic.configs(config);
    }

    private static Map<Integer, List<Integer>> placement(String text) {
        Map<Integer, List<Integer>> found = new HashMap<>();
        for (String replicas : text.split(";")) {
            found.put(found.size(), java.util.Arrays.stream(replicas.split(",")).map(Integer::valueOf).toList());
        }
        return found;
    }
}
