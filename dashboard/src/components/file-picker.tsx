import { useRef } from 'preact/hooks';
import { Button, type ButtonProps } from './button.tsx';
import { Loading } from './loading.tsx';
import { Notice } from './notice.tsx';
import { visibleText } from '../format/visible-text.ts';
import type { Upload } from './use-upload.ts';
import { messages } from '../messages/index.ts';

const text = messages.components;

/** A button that adds files to the memory. */
export function FilePicker({ upload, ...button }: { upload: Upload } & Omit<ButtonProps, 'onClick' | 'isDisabled'>) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button {...button} isDisabled={upload.uploading.value !== null} onClick={() => picker.current?.click()} />
      <input
        ref={picker}
        class="unseen"
        type="file"
        multiple
        tabIndex={-1}
        aria-label={text.filesToAdd}
        onChange={({ currentTarget }) => {
          void upload.add([...(currentTarget.files ?? [])]);
          currentTarget.value = '';
        }}
      />
    </>
  );
}

/** The file that is being added, and why others were not. */
export function UploadState({ upload: { uploading, refusals } }: { upload: Upload }) {
  return (
    <>
      {uploading.value !== null && <Loading label={text.adding(visibleText(uploading.value))} />}
      {refusals.value.map((reason) => (
        <Notice key={reason} tone="warn">
          {visibleText(reason)}
        </Notice>
      ))}
    </>
  );
}
