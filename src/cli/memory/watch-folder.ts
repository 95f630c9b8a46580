import { watch } from 'node:fs';
import type { CommandContext } from '../command.ts';
import type { DocumentAdder } from './add-documents.ts';
import type { DocumentPath } from './document-files.ts';
import { messageOf } from '../../core/errors.ts';

/** Editors write a file in several steps. */
const DEBOUNCE_MS = 300;
/** Without notifications of the file system, such as on a network share; also finds changes that were not notified. */
const RESCAN_MS = 5000;

const versionOf = ({ sizeBytes, modifiedMs }: DocumentPath): string => `${sizeBytes} ${modifiedMs}`;

/** Follows the changes of a folder until the command is cancelled. `known` are the files as they were added. */
export async function watchFolder(
  folder: string,
  known: readonly DocumentPath[],
  adder: DocumentAdder,
  { io, output }: Pick<CommandContext, 'io' | 'output'>,
): Promise<void> {
  let versions = new Map(known.map((file) => [file.name, versionOf(file)]));
  let wake = (): void => {};
  let isChanged = false;
  const notify = (): void => {
    isChanged = true;
    wake();
  };
  /** Resolves after `ms`, at a change unless `isDeaf`, or when the command is cancelled. */
  const pause = (ms: number, isDeaf = false): Promise<void> =>
    new Promise((resolve) => {
      if (io.signal.aborted || (isChanged && !isDeaf)) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        io.signal.removeEventListener('abort', done);
        wake = () => {};
        resolve();
      };
      const timer = setTimeout(done, ms);
      if (!isDeaf) wake = done;
      io.signal.addEventListener('abort', done, { once: true });
    });

  let watcher: ReturnType<typeof watch> | null = null;
  try {
    watcher = watch(folder, { recursive: true }, notify);
    watcher.on('error', () => watcher?.close());
  } catch {
    output.note('the file system does not report changes; looking every 5 seconds');
  }
  try {
    while (!io.signal.aborted) {
      await pause(RESCAN_MS);
      if (isChanged) await pause(DEBOUNCE_MS, true);
      isChanged = false;
      if (io.signal.aborted) return;
      try {
        const before = versions;
        const files = await adder.addFolder(
          folder,
          adder.emptyReport(),
          (file) => before.get(file.name) !== versionOf(file),
        );
        versions = new Map(files.map((file) => [file.name, versionOf(file)]));
      } catch (error) {
        if (io.signal.aborted) return;
        // A server that restarts or a folder that is away for a moment does not end the watch.
        output.note(`not updated: ${messageOf(error)}`);
      }
    }
  } finally {
    watcher?.close();
  }
}
