import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;

/**
 * Clients of a rehearsal in one process: a file of properties names them, lines of the standard input direct them,
 * and the process ends with its input. Each line is answered by lines on the standard output, the last one a full
 * stop.
 */
public final class Clients {
    private final EventLog log;
    private final List<Task> tasks = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private WarmUp warmUp;

    private Clients(Properties file, Path out) throws Exception {
        log = new EventLog(out);
        int count = Integer.parseInt(file.getProperty("clients"));
        for (int client = 0; client < count; client++) {
            Settings settings = Settings.of(file, client);
            tasks.add(settings.text("kind").equals("producer")
                    ? new ProducerTask(settings, log) : new ConsumerTask(settings, log));
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // What Kafka logs is no answer.
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Clients clients = new Clients(Settings.read(Path.of(arguments[0])), Path.of(arguments[1]));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            clients.obey(line.split("\t"), answers);
            answers.println(".");
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private void obey(String[] words, PrintStream answers) throws Exception {
        switch (words[0]) {
            case "warm" -> warmUp = new WarmUp(words[1], words[2], numbers(words[3]));
            case "cool" -> warmUp.end();
            case "remove" -> warmUp.remove();
            case "prepare" -> tasks.forEach(Task::prepare);
            case "start" -> tasks.forEach(task -> start(task, Long.parseLong(words[1])));
            case "status" -> tasks.forEach(task -> answers.println(task.status()));
            case "close" -> close();
            default -> throw new IllegalArgumentException(words[0]);
        }
        log.flush();
    }

    private static List<Integer> numbers(String text) {
        return Arrays.stream(text.split(",")).map(Integer::valueOf).toList();
    }

    private void start(Task task, long zero) {
        Thread thread = new Thread(() -> {
            try {
                task.run(zero);
            } catch (Exception error) {
                System.err.println(task.status() + ": " + error);
                error.printStackTrace();
            }
        });
        threads.add(thread);
        thread.start();
    }

    private void close() throws InterruptedException {
        tasks.forEach(Task::close);
        for (Thread thread : threads) {
            thread.join(10_000);
        }
    }
}
