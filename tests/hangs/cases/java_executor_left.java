// main returns, but nobody has shut the executor down, whose threads wait for more work.
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

class ExecutorLeft {
    public static void main(String[] arguments) throws Exception {
        ExecutorService executor = Executors.newFixedThreadPool(2);
        System.out.println(executor.submit(() -> 6 * 7).get());
    }  // hangs here
}
