// A server that has nothing to do until SIGTERM, for which it has a shutdown hook or a handler.
import java.lang.reflect.Proxy;
import java.util.concurrent.CountDownLatch;

class UntilTold {
    // sun.misc.Signal.handle(new Signal("TERM"), signal -> told.countDown()), without the compiler's warning.
    static void handle(CountDownLatch told) throws ReflectiveOperationException {
        Class<?> signal = Class.forName("sun.misc.Signal"), handler = Class.forName("sun.misc.SignalHandler");
        Object counts = Proxy.newProxyInstance(handler.getClassLoader(), new Class<?>[] {handler}, (proxy, method, of) -> {
            told.countDown();
            return null;
        });
        signal.getMethod("handle", signal, handler).invoke(null, signal.getConstructor(String.class).newInstance("TERM"), counts);
    }

    public static void main(String[] arguments) throws Exception {
        CountDownLatch told = new CountDownLatch(1);
        if (arguments[1].equals("hook")) {
            Runtime.getRuntime().addShutdownHook(new Thread(told::countDown));
        } else {
            handle(told);
        }
        System.out.println("ready " + ProcessHandle.current().pid());
        told.await();
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
