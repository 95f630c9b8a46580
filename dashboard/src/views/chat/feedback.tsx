import { useSignal } from '@preact/signals';
import { api } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { directionOf } from '../../format/direction.ts';
import { messages } from '../../messages/index.ts';
import { updateMessage } from './store.ts';
import type { Message } from './types.ts';

const text = messages.chat.feedback;

/** Rating buttons and a correction dialog; the buttons show only what the server has stored. */
export function Feedback({ conversationId, message }: { conversationId: string; message: Message }) {
  const isCorrecting = useSignal(false);
  const failure = useSignal<unknown>(null);
  const requestId = message.details!.requestId;
  const { thumbs, correction } = message.verdict;

  async function submitFeedback(changes: { thumbs?: 'up' | 'down'; correction?: string }): Promise<void> {
    const { thumbs: rating, correction: earlier } = message.verdict;
    const verdict = { thumbs: rating, correction: earlier, ...changes };
    // New feedback replaces the old on the server, so the earlier rating or correction is sent again.
    const report = await api.feedback({
      request_id: requestId,
      ...(verdict.thumbs === null ? {} : { thumbs: verdict.thumbs }),
      ...(verdict.correction === null ? {} : { correction: verdict.correction }),
    });
    const receipt = report.outcome;
    updateMessage(conversationId, message.id, (latest) => ({ ...latest, verdict: { ...verdict, receipt } }));
    failure.value = null;
  }
  const rate = (rating: 'up' | 'down'): void =>
    void submitFeedback({ thumbs: rating }).catch((error: unknown) => (failure.value = error));

  return (
    <>
      <Button
        kind="plain"
        isSmall
        icon="thumb-up"
        label={text.good}
        isPressed={thumbs === 'up'}
        onClick={() => rate('up')}
      />
      <Button
        kind="plain"
        isSmall
        icon="thumb-down"
        label={text.bad}
        isPressed={thumbs === 'down'}
        onClick={() => rate('down')}
      />
      <Button
        kind="plain"
        isSmall
        icon="edit"
        label={text.correct}
        isPressed={correction !== null}
        onClick={() => (isCorrecting.value = true)}
      />
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {isCorrecting.value && (
        <CorrectionDialog
          initial={correction ?? message.text}
          onSubmit={(corrected) => submitFeedback({ correction: corrected })}
          onClose={() => (isCorrecting.value = false)}
        />
      )}
    </>
  );
}

function CorrectionDialog({
  initial,
  onSubmit,
  onClose,
}: {
  initial: string;
  onSubmit: (corrected: string) => Promise<void>;
  onClose: () => void;
}) {
  const draft = useSignal(initial);
  const failure = useSignal<unknown>(null);
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    try {
      await onSubmit(draft.value);
      onClose();
    } catch (error) {
      failure.value = error;
    }
  }
  return (
    <Dialog title={text.correct} isWide onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <textarea
          class="input"
          rows={12}
          aria-label={text.correctedAnswer}
          dir={directionOf(draft.value)}
          value={draft}
          onInput={(event) => (draft.value = event.currentTarget.value)}
        />
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>{messages.chat.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={draft.value.trim() === ''}>
            {text.send}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
