/** A client on a thread of its own. */
interface Task {
    /** Connects, before the scenario's zero. */
    void prepare();

    /** Works until it has nothing left to do, or is closed; zero in microseconds since 1970. */
    void run(long zero) throws Exception;

    /** What it does now, as fields separated by tabs. */
    String status();

    /** Ends it, in good order where it can. */
    void close();
}
