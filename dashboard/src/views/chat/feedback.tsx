import { useSignal } from '@preact/signals';
import type { FeedbackOutcome, FeedbackReport } from '../../api/types.ts';
import { learningOf } from '../../api/learning.ts';
import { api, client, hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { formatNumber } from '../../format/numbers.ts';
import { directionOf } from '../../format/direction.ts';
import { visibleText } from '../../format/visible-text.ts';
import { updateMessage } from './store.ts';
import { type Message, NO_VERDICT } from './types.ts';

const learning = learningOf(client);

/** Rating buttons and a correction dialog; the buttons show only what the server has stored. */
export function Feedback({
  conversationId,
  message,
  onAskAgain,
}: {
  conversationId: string;
  message: Message;
  /** Null: another message follows, or one is being written. */
  onAskAgain: (() => void) | null;
}) {
  const isCorrecting = useSignal(false);
  const failure = useSignal<unknown>(null);
  const requestId = message.details!.requestId;
  const { thumbs, correction, outcome } = message.verdict;

  async function submitFeedback(changes: { thumbs?: 'up' | 'down'; correction?: string }): Promise<void> {
    const { outcome: _, ...earlier } = message.verdict;
    const verdict = { ...earlier, ...changes };
    // New feedback replaces the old on the server, so the earlier rating or correction is sent again.
    const report = await api.feedback({
      request_id: requestId,
      ...(verdict.thumbs === null ? {} : { thumbs: verdict.thumbs }),
      ...(verdict.correction === null ? {} : { correction: verdict.correction }),
    });
    updateMessage(conversationId, message.id, (latest) => ({ ...latest, verdict }));
    failure.value = null;
    const outcome = describeOutcome(await finalOutcome(report));
    updateMessage(conversationId, message.id, (latest) => ({ ...latest, verdict: { ...latest.verdict, outcome } }));
    showToast(outcome);
  }
  /** Asks until the server has learned. */
  async function finalOutcome({ outcome }: FeedbackReport): Promise<FeedbackOutcome> {
    let latest = outcome;
    for (let i = 0; i < MAX_POLLS && latest.state === 'pending'; i++) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      latest = (await api.feedbackReceipt(requestId)).outcome;
    }
    return latest;
  }
  async function forget(): Promise<void> {
    await learning.forget(requestId);
    const outcome = 'Forgotten: the correction and everything learned from it were deleted.';
    updateMessage(conversationId, message.id, (latest) => ({ ...latest, verdict: { ...NO_VERDICT, outcome } }));
  }
  const rate = (rating: 'up' | 'down'): void =>
    void submitFeedback({ thumbs: rating }).catch((error: unknown) => (failure.value = error));

  return (
    <>
      <Button
        kind="plain"
        isSmall
        icon="thumb-up"
        label="Good answer"
        isPressed={thumbs === 'up'}
        onClick={() => rate('up')}
      />
      <Button
        kind="plain"
        isSmall
        icon="thumb-down"
        label="Bad answer"
        isPressed={thumbs === 'down'}
        onClick={() => rate('down')}
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
      {outcome !== undefined && (
        <div class="small soft feedback-outcome">
          {visibleText(outcome)}
          {correction !== null && onAskAgain !== null && (
            <Button isSmall onClick={onAskAgain}>
              Ask again
            </Button>
          )}
          {correction !== null && hasPart('learning') && (
            <Button isSmall onClick={() => void forget().catch((error: unknown) => (failure.value = error))}>
              Forget this
            </Button>
          )}
        </div>
      )}
      {isCorrecting.value && (
        <CorrectionDialog
          text={correction ?? message.text}
          onSubmit={(text) => submitFeedback({ correction: text })}
          onClose={() => (isCorrecting.value = false)}
        />
      )}
    </>
  );
}

const POLL_MS = 1000;
const MAX_POLLS = 60;

const OUTCOMES: Readonly<Record<FeedbackOutcome['state'], string>> = {
  remembered: 'Remembered',
  learned: 'Learned',
  refused: 'Not learned',
  'already-known': 'Already known',
  superseded: 'Replaced',
  stored: 'Saved',
  pending: 'Saved',
};

function describeOutcome({
  state,
  reason,
  loss_before: before,
  loss_after: after,
  supersedes,
}: FeedbackOutcome): string {
  // How surprising the right answer is to the model, in nats per token.
  const loss =
    before === null || after === null || before === after
      ? ''
      : ` Loss ${formatNumber(before)} → ${formatNumber(after)}.`;
  const replaced = supersedes.length === 0 ? '' : ' It replaces an earlier correction.';
  return `${OUTCOMES[state]}: ${reason}.${loss}${replaced}`;
}

function CorrectionDialog({
  text,
  onSubmit,
  onClose,
}: {
  text: string;
  onSubmit: (text: string) => Promise<void>;
  onClose: () => void;
}) {
  const draft = useSignal(text);
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
    <Dialog title="Correct this answer" isWide onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        <textarea
          class="input"
          rows={12}
          aria-label="Corrected answer"
          dir={directionOf(draft.value)}
          value={draft}
          onInput={(event) => (draft.value = event.currentTarget.value)}
        />
        {failure.value !== null && <ErrorNotice error={failure.value} />}
        <div class="row end">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" isDisabled={draft.value.trim() === ''}>
            Send correction
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
