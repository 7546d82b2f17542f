// A server that has nothing to do until SIGTERM, for which it has a shutdown hook or a handler.
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;

class UntilSigterm {
    // sun.misc.Signal.handle(new Signal("TERM"), signal -> asked.countDown()), without the compiler's warning.
    static void handle(CountDownLatch asked) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal"), handler = Class.forName("sun.misc.SignalHandler");
        Object counts = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, (proxy, method, of) -> {
            asked.countDown();
            return null;
        });
        signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance("TERM"), counts);
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        if (arguments[1].equals("hook")) {
            Thread main = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                asked.countDown();
                try {
                    main.join(); // the machine would end before main has printed
                } catch (InterruptedException unexpected) {
                    throw new AssertionError(unexpected);
                }
            }));
        } else {
            handle(asked);
        }
        System.out.println("ready " + ProcessHandle.current().pid());
        asked.await();
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
