// A static initialiser computes with a parallel stream, whose threads need the class to be initialised.
import java.util.stream.IntStream;

class ParallelInInit {
    static final int SUM = IntStream.range(0, 100_000).parallel().map(i -> i + 1).sum();

    public static void main(String[] arguments) {
        System.out.println(SUM);  // hangs here
        System.out.println("done");
    }
}
