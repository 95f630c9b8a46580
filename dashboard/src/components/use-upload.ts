import { type ReadonlySignal, useSignal } from '@preact/signals';
import { messageOf } from '../api/errors.ts';
import { memoryOf } from '../api/memory.ts';
import { client } from '../app/session.ts';
import { formatCountOf } from '../format/numbers.ts';
import { visibleText } from '../format/visible-text.ts';
import { showToast } from './toast.tsx';

const memory = memoryOf(client);

/** Adds files to the memory. */
export interface Upload {
  /** The name of the file that is being added; null: none. */
  readonly uploading: ReadonlySignal<string | null>;
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

/** `onAdded` is called with the number of files that are in the memory now. */
export function useUpload(canWrite: boolean, onAdded: (numAdded: number) => void): Upload {
  const uploading = useSignal<string | null>(null);
  const refusals = useSignal<readonly string[]>([]);
  const isOver = useSignal(false);

  async function add(files: readonly File[]): Promise<void> {
    refusals.value = [];
    let numAdded = 0;
    for (const file of files) {
      uploading.value = file.name;
      try {
        const { numChunks, isUnchanged } = await memory.addDocument(file);
        const name = visibleText(file.name);
        showToast(isUnchanged ? `${name} is unchanged.` : `${name}: ${formatCountOf(numChunks, 'chunk')}.`);
        numAdded++;
      } catch (error) {
        refusals.value = [...refusals.value, messageOf(error)];
      }
    }
    uploading.value = null;
    onAdded(numAdded);
  }

  return {
    uploading,
    refusals,
    isOver,
    add,
    dropHandlers: {
      onDragOver(event) {
        if (!canWrite || event.dataTransfer?.types.includes('Files') !== true) return;
        event.preventDefault();
        isOver.value = true;
      },
      onDragLeave: () => (isOver.value = false),
      onDrop(event) {
        if (!canWrite || event.dataTransfer?.types.includes('Files') !== true) return;
        event.preventDefault();
        isOver.value = false;
        void add([...event.dataTransfer.files]);
      },
    },
  };
}
