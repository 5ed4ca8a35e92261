import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;

/** Names of records, as sim/wire/payload.py has them: magic, producer index, record number, intended instant. */
record Payload(int producer, long number) {
    static final int BYTES = 24;
    static final String HEADER = "lq";
    private static final byte[] MAGIC = "LQR1".getBytes(StandardCharsets.US_ASCII);
    private static final byte FILLER = '.';

    /** A value of that size, at least {@link #BYTES}; behind the name come noise and filler. */
    static byte[] encode(int producer, long number, long intended, int size, byte[] noise) {
        ByteBuffer value = ByteBuffer.allocate(size);
        value.put(MAGIC).putInt(producer).putLong(number).putLong(intended);
        value.put(noise, 0, Math.min(noise.length, size - BYTES));
        Arrays.fill(value.array(), value.position(), size, FILLER);
        return value.array();
    }

    /** The name of a record; null if none of our producers made it. */
    static Payload of(byte[] value, Header[] headers) {
        byte[] named = value;
        if (value == null && headers.length > 0 && headers[0].key().equals(HEADER)) {
            named = headers[0].value();
        }
        if (named == null || named.length < BYTES || !Arrays.equals(named, 0, 4, MAGIC, 0, 4)) {
            return null;
        }
        ByteBuffer fields = ByteBuffer.wrap(named, 4, BYTES - 4);
        return new Payload(fields.getInt(), fields.getLong());
    }
}
