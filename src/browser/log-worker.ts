// Keeps one sealed log for the page, which cannot write to its storage synchronously; started and ended by remote-log.ts.
import { openFolder } from '../platform/browser/files/model-folder.ts';
import { openSealedLog, type SealedLog } from '../platform/browser/sealing/sealed-log.ts';
import { serveWorkerCalls } from '../platform/browser/threads/worker-calls.ts';
import { LOG_METHODS, type RemoteLog } from './remote-log.ts';

let log: SealedLog | null = null;

const remote: RemoteLog = {
  async open(folder, name, key) {
    const opened = await openSealedLog(await openFolder(folder), name, key);
    ({ log } = opened);
    return { records: opened.records, sizeBytes: log.sizeBytes, numDamaged: log.numDamaged };
  },
  async append(entry) {
    await log!.append(entry);
    return log!.sizeBytes;
  },
  async rewrite(entries) {
    await log!.rewrite(entries);
    return log!.sizeBytes;
  },
  async close() {
    await log?.settled();
    log?.close();
  },
};

serveWorkerCalls(remote, LOG_METHODS);
