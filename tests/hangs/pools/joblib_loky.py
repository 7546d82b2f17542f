"""joblib's default pool."""

import after_fork
import joblib

if __name__ == "__main__":
    after_fork.warm_up()
    with joblib.parallel_backend("loky", n_jobs=2):
        assert all(joblib.Parallel()(joblib.delayed(after_fork.works)(i) for i in range(6)))
    joblib.externals.loky.get_reusable_executor().shutdown()
    after_fork.report()
