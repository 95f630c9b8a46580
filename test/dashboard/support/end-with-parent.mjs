// Imported by a server before its own code: it ends with the test process, however that ends, and removes its folder.
import { rmSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';

if (isMainThread) {
  process.once('disconnect', () => {
    rmSync(process.env.RUVLLM_TEST_FOLDER, { recursive: true, force: true });
    process.kill(process.pid, 'SIGKILL');
  });
}
