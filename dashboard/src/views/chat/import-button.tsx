import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { formatBytes } from '../../format/numbers.ts';
import { messages } from '../../messages/index.ts';
import { MAX_IMPORT_BYTES, parseImport } from './import.ts';
import { addConversations, openConversation } from './store.ts';
import type { Conversation } from './types.ts';

const text = messages.chat.imports;

/** Adds the conversations of JSON files. */
export function ImportButton({ onDone }: { onDone: () => void }) {
  const picker = useRef<HTMLInputElement>(null);
  const failure = useSignal<unknown>(null);
  async function add(files: readonly File[]): Promise<void> {
    failure.value = null;
    try {
      // All files are read before the first is added: a wrong one adds nothing.
      const added: Conversation[] = [];
      for (const file of files) added.push(...(await readFile(file)));
      if (added.length === 0) return;
      addConversations(added);
      openConversation(added[0]!.id);
      showToast(text.done(added.length));
      onDone();
    } catch (error) {
      failure.value = error;
    }
  }
  return (
    <>
      <Button kind="plain" isSmall icon="upload" onClick={() => picker.current?.click()}>
        {text.button}
      </Button>
      <input
        ref={picker}
        class="unseen"
        type="file"
        accept=".json,application/json"
        multiple
        tabIndex={-1}
        aria-label={text.files}
        onChange={({ currentTarget }) => {
          void add([...(currentTarget.files ?? [])]).then(() => (currentTarget.value = ''));
        }}
      />
      {failure.value !== null && <ErrorNotice error={failure.value} />}
    </>
  );
}

async function readFile(file: File): Promise<Conversation[]> {
  if (file.size > MAX_IMPORT_BYTES) throw new Error(text.tooLarge(file.name, formatBytes(MAX_IMPORT_BYTES)));
  try {
    return parseImport(await file.text());
  } catch (error) {
    throw new Error(text.failed(file.name, error instanceof Error ? error.message : String(error)), { cause: error });
  }
}
