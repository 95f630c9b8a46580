import { useSignal } from '@preact/signals';
import type { FeedbackReport } from '../../api/types.ts';
import { api } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { updateMessage } from './store.ts';
import type { Message } from './types.ts';

/** Thumbs and a better answer; what was said is shown once the server has it. */
export function Feedback({ conversationId, message }: { conversationId: string; message: Message }) {
  const isCorrecting = useSignal(false);
  const failure = useSignal<unknown>(null);
  const requestId = message.details!.requestId;
  const { thumbs, correction } = message.verdict;

  async function give(words: { thumbs?: 'up' | 'down'; correction?: string }): Promise<void> {
    const report = await api.feedback({ request_id: requestId, ...words });
    updateMessage(conversationId, message.id, (one) => ({ ...one, verdict: { ...one.verdict, ...words } }));
    failure.value = null;
    showToast(describe(report));
  }
  const judge = (way: 'up' | 'down'): void =>
    void give({ thumbs: way }).catch((error: unknown) => (failure.value = error));

  return (
    <>
      <Button
        kind="plain"
        isSmall
        icon="thumb-up"
        label="Good answer"
        isPressed={thumbs === 'up'}
        onClick={() => judge('up')}
      />
      <Button
        kind="plain"
        isSmall
        icon="thumb-down"
        label="Bad answer"
        isPressed={thumbs === 'down'}
        onClick={() => judge('down')}
      />
      <Button
        kind="plain"
        isSmall
        icon="edit"
        label="Correct this answer"
        isPressed={correction !== null}
        onClick={() => (isCorrecting.value = true)}
      />
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {isCorrecting.value && (
        <Correction
          text={correction ?? message.text}
          onGive={(text) => give({ correction: text })}
          onClose={() => (isCorrecting.value = false)}
        />
      )}
    </>
  );
}

function describe({ learned }: FeedbackReport): string {
  if (learned === undefined) return 'Your feedback is kept.';
  return learned.state === 'learned' ? 'Your feedback is kept, and learned from.' : 'Your feedback is kept.';
}

function Correction({
  text,
  onGive,
  onClose,
}: {
  text: string;
  onGive: (text: string) => Promise<void>;
  onClose: () => void;
}) {
  const words = useSignal(text);
  const failure = useSignal<unknown>(null);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await onGive(words.value);
      onClose();
    } catch (error) {
      failure.value = error;
    }
  }
  return (
    <Dialog title="What should the answer have been?" isWide onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <textarea
          class="input"
          rows={12}
          aria-label="Corrected answer"
          dir="auto"
          value={words}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={words.value.trim() === ''}>
            Send correction
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
