import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Button } from '../../components/button.tsx';

/** A field that grows with a longer text is laid out again with every letter. */
const MAX_GROWING_CHARS = 20_000;

/** Where a message is written: Enter sends it, with Shift it is a line break. */
export function Composer({
  isAnswering,
  isDisabled,
  onSend,
  onStop,
}: {
  isAnswering: boolean;
  isDisabled: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  // Its text stays in the field: a megabyte that is put back with every letter cannot be typed into.
  const isEmpty = useSignal(true);
  const isLong = useSignal(false);
  const look = (): void => {
    const { value } = field.current!;
    isEmpty.value = value.trim() === '';
    isLong.value = value.length > MAX_GROWING_CHARS;
  };
  useEffect(() => field.current?.focus(), []);

  function send(): void {
    const { value } = field.current!;
    if (value.trim() === '' || isAnswering || isDisabled) return;
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
        dir="auto"
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
        <Button kind="primary" type="submit" icon="send" label="Send" isDisabled={isEmpty.value || isDisabled} />
      )}
    </form>
  );
}
