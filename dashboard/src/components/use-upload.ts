import { type ReadonlySignal, useSignal } from '@preact/signals';
import { messageOf } from '../api/errors.ts';
import { type AddedDocument, memoryOf } from '../api/memory.ts';
import { client } from '../app/session.ts';
import { visibleText } from '../format/visible-text.ts';
import { showToast } from './toast.tsx';
import { messages } from '../messages/index.ts';

const text = messages.components;

const memory = memoryOf(client);

/** What became of a file before the memory: taken by another part, refused with a reason, or left for the memory. */
export type Diversion = 'taken' | { readonly refusal: string } | 'none';

/** Adds files to the memory. */
export interface Upload {
  /** The name of the file that is being added; null: none. */
  readonly uploading: ReadonlySignal<string | null>;
  /** Files of the last choice: those that are done, and all. */
  readonly progress: ReadonlySignal<{ readonly numDone: number; readonly numFiles: number }>;
  /** The documents of the last choice. */
  readonly added: ReadonlySignal<readonly AddedDocument[]>;
  /** Why files were not added. */
  readonly refusals: ReadonlySignal<readonly string[]>;
  /** Whether files are held over the place where they can be dropped. */
  readonly isOver: ReadonlySignal<boolean>;
  add(files: readonly File[]): Promise<void>;
  /** Handlers of the element that files can be dropped on. */
  readonly dropHandlers: {
    readonly onDragOver: (event: DragEvent) => void;
    readonly onDragLeave: () => void;
    readonly onDrop: (event: DragEvent) => void;
  };
}

/**
 * `onAdded` is called with the number of files that are in the memory now. `divert` takes files that are not for the memory; with it, files
 * can be dropped also without the permission to write.
 */
export function useUpload(
  canWrite: boolean,
  onAdded: (numAdded: number) => void,
  divert: ((file: File) => Promise<Diversion>) | null = null,
): Upload {
  const takesDrops = canWrite || divert !== null;
  const uploading = useSignal<string | null>(null);
  const progress = useSignal({ numDone: 0, numFiles: 0 });
  const added = useSignal<readonly AddedDocument[]>([]);
  const refusals = useSignal<readonly string[]>([]);
  const isOver = useSignal(false);

  async function add(files: readonly File[]): Promise<void> {
    refusals.value = [];
    added.value = [];
    for (const [index, file] of files.entries()) {
      progress.value = { numDone: index, numFiles: files.length };
      const diversion = (await divert?.(file)) ?? 'none';
      if (typeof diversion === 'object') refusals.value = [...refusals.value, diversion.refusal];
      if (diversion !== 'none') continue;
      uploading.value = file.name;
      try {
        const document = await memory.addDocument(file);
        const { numChunks, isUnchanged } = document;
        const name = visibleText(file.name);
        showToast(isUnchanged ? text.unchanged(name) : text.added(name, numChunks));
        added.value = [...added.value, document];
      } catch (error) {
        refusals.value = [...refusals.value, messageOf(error)];
      }
    }
    uploading.value = null;
    onAdded(added.value.length);
  }

  return {
    uploading,
    progress,
    added,
    refusals,
    isOver,
    add,
    dropHandlers: {
      onDragOver(event) {
        if (!takesDrops || event.dataTransfer?.types.includes('Files') !== true) return;
        event.preventDefault();
        isOver.value = true;
      },
      onDragLeave: () => (isOver.value = false),
      onDrop(event) {
        if (!takesDrops || event.dataTransfer?.types.includes('Files') !== true) return;
        event.preventDefault();
        isOver.value = false;
        void add([...event.dataTransfer.files]);
      },
    },
  };
}
