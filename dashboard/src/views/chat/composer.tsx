import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { onSignOut, sessionState } from '../../app/session.ts';
import { directionOf } from '../../format/direction.ts';
import { Button } from '../../components/button.tsx';
import { messages } from '../../messages/index.ts';

const text = messages.chat.composer;

/** Longer texts stop the field from growing, because a growing field is laid out again on every keystroke. */
const MAX_GROWING_CHARS = 20_000;

/** Unsent text by conversation, so that switching views does not lose it. */
const drafts = new Map<string, string>();
/** The draft shown last survives a reload, such as the one that changes the language. */
const RELOAD_KEY = 'ruvllm.draft';
let reloadedDraft = sessionStorage.getItem(RELOAD_KEY) ?? '';
let readDraft = (): string => reloadedDraft;
addEventListener('pagehide', () => {
  try {
    sessionStorage.setItem(RELOAD_KEY, readDraft());
  } catch {
    // A draft larger than the storage is lost.
  }
});
onSignOut(() => {
  drafts.clear();
  reloadedDraft = '';
  readDraft = () => '';
  sessionStorage.removeItem(RELOAD_KEY);
});

/** The message input: Enter sends, Shift+Enter inserts a line break. */
export function Composer({
  conversationId,
  isAnswering,
  attach,
  hasImages,
  onSend,
  onStop,
  onFiles,
}: {
  conversationId: string;
  isAnswering: boolean;
  /** A button that adds files; null: none. */
  attach: ComponentChildren;
  /** Whether the message has images; then it needs no text. */
  hasImages: boolean;
  onSend: (message: string) => void;
  onStop: () => void;
  /** Called with pasted files. */
  onFiles: (files: readonly File[]) => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  // Uncontrolled: writing a megabyte back into the field on every keystroke would make typing impossible.
  const isEmpty = useSignal(true);
  const isLong = useSignal(false);
  const direction = useSignal(directionOf(''));
  const syncState = (): void => {
    const { value } = field.current!;
    isEmpty.value = value.trim() === '';
    direction.value = directionOf(value);
    isLong.value = value.length > MAX_GROWING_CHARS;
  };
  useLayoutEffect(() => {
    const element = field.current!;
    element.value = drafts.get(conversationId) ?? reloadedDraft;
    reloadedDraft = '';
    readDraft = () => element.value;
    syncState();
    element.focus();
    return () => {
      // After a sign-out the next user must not see the draft.
      if (sessionState.value === 'signed-in') drafts.set(conversationId, element.value);
    };
  }, []);

  function send(): void {
    const { value } = field.current!;
    if ((value.trim() === '' && !hasImages) || isAnswering) return;
    field.current!.value = '';
    syncState();
    onSend(value);
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {attach}
      <textarea
        ref={field}
        class="input"
        rows={1}
        data-long={isLong.value ? '' : undefined}
        aria-label={text.message}
        placeholder={text.placeholder}
        dir={direction.value}
        onInput={syncState}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          onFiles(files);
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {isAnswering ? (
        <Button icon="stop" label={text.stop} onClick={onStop} />
      ) : (
        <Button kind="primary" type="submit" icon="send" label={text.send} isDisabled={isEmpty.value && !hasImages} />
      )}
    </form>
  );
}
