import { type ErasurePart, type ErasureSubject, isWholeTenant } from '../../core/erasure.ts';
import type { BatchRecords } from '../../runtime/lower-layers.ts';
import type { BatchRunner } from './batch-runner.ts';
import type { BatchStore } from './batch-store.ts';
import type { FileStore } from './file-store.ts';
import { divideLines, userOfLine } from './input-lines.ts';

interface EraseContext {
  readonly files: FileStore;
  readonly batches: BatchStore;
  readonly records: BatchRecords;
  readonly runner: BatchRunner;
}

/**
 * Erases requests from files that were uploaded: the lines of a user or a request become empty, so that the positions of the others
 * stay. The memory erases the records of results, and everything of a whole tenant.
 */
export function createBatchErasure({ files, batches, records, runner }: EraseContext): ErasurePart {
  /** The lines of each input file that belong to the subject. */
  async function findLines(subject: ErasureSubject): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const { tenant, userId, requestIds } = subject;
    const found = new Map<string, Set<number>>();
    const add = (fileId: string, line: number): void =>
      void found.set(fileId, (found.get(fileId) ?? new Set<number>()).add(line));
    for (const { batchId, line } of await records.linesOf(tenant, [...requestIds])) {
      const batch = await batches.find(tenant, batchId);
      if (batch !== null) add(batch.inputFileId, line);
    }
    if (userId !== null) {
      for (const { id } of await files.inputs(tenant)) {
        const lines = divideLines((await files.readText(tenant, id)) ?? '');
        for (const [index, line] of lines.entries()) if (userOfLine(line) === userId) add(id, index);
      }
    }
    return found;
  }

  async function eraseLines(subject: ErasureSubject): Promise<void> {
    const { tenant } = subject;
    for (const [fileId, erased] of await findLines(subject)) {
      const text = await files.readText(tenant, fileId);
      if (text === null) continue;
      const lines = divideLines(text).map((line, index) => (erased.has(index) ? '' : line));
      await files.replace(tenant, fileId, lines.join('\n'));
    }
  }

  return {
    name: 'batches',
    erase: (subject) =>
      runner.withPause(
        subject.tenant,
        async () => {
          await files.settle();
          if (!isWholeTenant(subject)) await eraseLines(subject);
        },
        !isWholeTenant(subject),
      ),
    async count(subject) {
      if (isWholeTenant(subject)) return (await files.inputs(subject.tenant)).length;
      let numLines = 0;
      for (const [fileId, found] of await findLines(subject)) {
        const lines = divideLines((await files.readText(subject.tenant, fileId)) ?? '');
        numLines += [...found].filter((line) => (lines[line] ?? '') !== '').length;
      }
      return numLines;
    },
  };
}
