import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { onSignOut, sessionState } from '../../app/session.ts';
import { directionOf } from '../../format/direction.ts';
import { Button } from '../../components/button.tsx';

/** A field that grows with a longer text is laid out again with every letter. */
const MAX_GROWING_CHARS = 20_000;

/** What was written and not sent, by conversation: a look at another view does not lose it. */
const drafts = new Map<string, string>();
onSignOut(() => drafts.clear());

/** Where a message is written: Enter sends it, with Shift it is a line break. */
export function Composer({
  conversationId,
  isAnswering,
  onSend,
  onStop,
}: {
  conversationId: string;
  isAnswering: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  // Its text stays in the field: a megabyte that is put back with every letter cannot be typed into.
  const isEmpty = useSignal(true);
  const isLong = useSignal(false);
  const direction = useSignal(directionOf(''));
  const look = (): void => {
    const { value } = field.current!;
    isEmpty.value = value.trim() === '';
    direction.value = directionOf(value);
    isLong.value = value.length > MAX_GROWING_CHARS;
  };
  useLayoutEffect(() => {
    const element = field.current!;
    element.value = drafts.get(conversationId) ?? '';
    look();
    element.focus();
    return () => {
      // Who was signed out leaves nothing for the next.
      if (sessionState.value === 'signed-in') drafts.set(conversationId, element.value);
    };
  }, []);

  function send(): void {
    const { value } = field.current!;
    if (value.trim() === '' || isAnswering) return;
    field.current!.value = '';
    look();
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
      <textarea
        ref={field}
        class="input"
        rows={1}
        data-long={isLong.value ? '' : undefined}
        aria-label="Message"
        placeholder="Write a message"
        dir={direction.value}
        onInput={look}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {isAnswering ? (
        <Button icon="stop" label="Stop" onClick={onStop} />
      ) : (
        <Button kind="primary" type="submit" icon="send" label="Send" isDisabled={isEmpty.value} />
      )}
    </form>
  );
}
