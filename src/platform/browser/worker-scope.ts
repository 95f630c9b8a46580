/** The parts of a dedicated worker's scope that the DOM's types lack. */
export interface WorkerScope {
  postMessage(message: unknown, transfer?: Transferable[]): void;
  addEventListener(type: 'message', listener: (event: MessageEvent) => void): void;
  close(): void;
}

/** Exclusive access to a file of the origin-private file system; only in workers. */
export interface SyncAccessHandle {
  read(target: Uint8Array, options: { readonly at: number }): number;
  write(bytes: Uint8Array, options: { readonly at: number }): number;
  truncate(sizeBytes: number): void;
  getSize(): number;
  flush(): void;
  close(): void;
}

/** A file handle as workers see it. */
export interface WorkerFileHandle extends FileSystemFileHandle {
  createSyncAccessHandle(): Promise<SyncAccessHandle>;
  move(name: string): Promise<void>;
}

/** Reads blobs synchronously; only in workers. */
export interface SyncFileReader {
  readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

/** Reports that a worker failed; the page's console stays quiet, because the caller gets an error. */
export function onWorkerError(worker: Worker, listener: (reason: string) => void): void {
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    // A script that could not be loaded has no message.
    listener(event.message === undefined || event.message === '' ? 'could not be loaded' : `failed: ${event.message}`);
  });
}

export const workerScope = globalThis as unknown as WorkerScope;

export function createSyncFileReader(): SyncFileReader {
  const { FileReaderSync } = globalThis as unknown as { FileReaderSync: new () => SyncFileReader };
  return new FileReaderSync();
}
