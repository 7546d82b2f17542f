// A static initialiser computes with a parallel stream, whose threads need the class to be initialised.
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

class ParallelInInit {
    // Slow enough that the main thread does not do all of it before another thread has started.
    static final int SUM = IntStream.range(0, 400).parallel().map(ParallelInInit::slow).sum();

    static int slow(int number) {
        LockSupport.parkNanos(1_000_000);
        return number;
    }

    public static void main(String[] arguments) {
        System.out.println(SUM);  // hangs here
        System.out.println("done");
    }
}
