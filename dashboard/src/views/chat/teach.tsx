import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { learningOf } from '../../api/learning.ts';
import { messageOf } from '../../api/errors.ts';
import type { FeedbackOutcome } from '../../api/types.ts';
import { api, client, hasPart } from '../../app/session.ts';
import { Button } from '../../components/button.tsx';
import { Field } from '../../components/field.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { directionOf } from '../../format/direction.ts';
import { formatNumber } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';
import { askOnce, questionOf } from './answer.ts';
import { MarkdownText } from './markdown-text.tsx';
import { updateMessage } from './store.ts';
import { type Conversation, type Message, NO_VERDICT, type Verdict } from './types.ts';

const text = messages.chat.feedback;
const learning = learningOf(client);
const POLL_MS = 1000;
const MAX_POLLS = 60;

/** An answer to the question of a corrected one, which is not part of the conversation. */
interface Trial {
  readonly question: string;
  readonly text: string;
  readonly isComplete: boolean;
  readonly usedPastAnswer: boolean;
  readonly failure: string | null;
}

interface Trials {
  readonly again?: Trial;
  readonly paraphrase?: Trial;
}

/** The outcome of feedback, and for a correction the old answer, the correction and new answers side by side. */
export function Teach({
  conversation,
  message,
}: {
  conversation: Pick<Conversation, 'id' | 'model'>;
  message: Message;
}) {
  const { correction, outcome, receipt } = message.verdict;
  const requestId = message.details!.requestId;
  const trials = useSignal<Trials>({});
  const isRephrasing = useSignal(false);
  const failure = useSignal<unknown>(null);
  const aborter = useMemo(() => new AbortController(), []);
  useEffect(() => () => aborter.abort(), []);
  const setVerdict = (change: (verdict: Verdict) => Verdict): void =>
    updateMessage(conversation.id, message.id, (latest) => ({ ...latest, verdict: change(latest.verdict) }));

  const isPending = receipt?.state === 'pending';
  // A page that is opened while the server learns waits for the outcome, too.
  useEffect(() => {
    let [timer, numPolls] = [0, 0];
    async function poll(): Promise<void> {
      const latest = (await api.feedbackReceipt(requestId).catch(() => null))?.outcome ?? null;
      if (latest !== null && latest.state !== 'pending') {
        // Newer feedback has a receipt of its own.
        setVerdict((verdict) => (verdict.receipt === receipt ? { ...verdict, receipt: latest } : verdict));
      } else if (++numPolls < MAX_POLLS) timer = window.setTimeout(() => void poll(), POLL_MS);
    }
    if (isPending) timer = window.setTimeout(() => void poll(), POLL_MS);
    return () => clearTimeout(timer);
  }, [receipt, requestId]);

  async function ask(kind: keyof Trials, question: string): Promise<void> {
    let trial: Trial = { question, text: '', isComplete: false, usedPastAnswer: false, failure: null };
    const show = (changes: Partial<Trial>): void => {
      trial = { ...trial, ...changes };
      trials.value = { ...trials.value, [kind]: trial };
    };
    show({});
    try {
      await askOnce(conversation.id, message.id, question, show, aborter.signal);
      show({ isComplete: true });
    } catch (error) {
      show({ isComplete: true, failure: messageOf(error) });
    }
  }
  async function forget(): Promise<void> {
    await learning.forget(requestId);
    trials.value = {};
    setVerdict(() => ({ ...NO_VERDICT, outcome: text.forgotten }));
  }
  if (receipt === undefined && outcome === undefined) return null;
  const { again, paraphrase } = trials.value;
  const isAsking = again?.isComplete === false || paraphrase?.isComplete === false;
  const question = questionOf(conversation.id, message.id);
  return (
    <section class="teach" aria-label={text.title}>
      <div class="small soft feedback-outcome" role="status">
        {receipt === undefined ? visibleText(outcome!) : describeOutcome(receipt)}
      </div>
      {receipt !== undefined && <Figures receipt={receipt} />}
      {failure.value !== null && <ErrorNotice error={failure.value} />}
      {correction !== null && (
        <>
          <div class="teach-columns">
            <Column title={text.before} answer={message.text} />
            <Column title={text.yours} answer={correction} />
            {again !== undefined && <Column title={text.now} answer={again.text} trial={again} />}
            {paraphrase !== undefined && (
              <Column title={text.paraphrased} note={paraphrase.question} answer={paraphrase.text} trial={paraphrase} />
            )}
          </div>
          <div class="row">
            <Button isSmall isDisabled={isAsking} onClick={() => void ask('again', question)}>
              {text.askAgain}
            </Button>
            <Button isSmall isPressed={isRephrasing.value} onClick={() => (isRephrasing.value = !isRephrasing.value)}>
              {text.tryParaphrase}
            </Button>
            {hasPart('learning') && (
              <Button isSmall onClick={() => void forget().catch((error: unknown) => (failure.value = error))}>
                {text.forget}
              </Button>
            )}
          </div>
          {isRephrasing.value && (
            <Paraphrase
              question={question}
              isAsking={isAsking}
              onAsk={(rephrased) => void ask('paraphrase', rephrased)}
            />
          )}
        </>
      )}
    </section>
  );
}

function Column({
  title,
  note = null,
  answer,
  trial,
}: {
  title: string;
  note?: string | null;
  answer: string;
  trial?: Trial;
}) {
  return (
    <section class="teach-column" aria-label={title} aria-busy={trial?.isComplete === false}>
      <h3>{title}</h3>
      {note !== null && <p class="small soft words">{visibleText(note)}</p>}
      <MarkdownText text={answer} isComplete={trial?.isComplete ?? true} />
      {trial?.usedPastAnswer === true && <p class="small soft">{text.usedPastAnswer}</p>}
      {trial != null && trial.failure !== null && (
        <div class="notice" role="alert">
          <p>{visibleText(trial.failure)}</p>
        </div>
      )}
    </section>
  );
}

/** A field with the question in other words, from a template. */
function Paraphrase({
  question,
  isAsking,
  onAsk,
}: {
  question: string;
  isAsking: boolean;
  onAsk: (question: string) => void;
}) {
  const draft = useSignal(text.paraphraseTemplate(question));
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        onAsk(draft.value);
      }}
    >
      <Field label={text.paraphrase} hint={text.paraphraseHint}>
        {(id) => (
          <textarea
            id={id}
            class="input"
            rows={2}
            dir={directionOf(draft.value)}
            value={draft}
            onInput={(event) => (draft.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="row">
        <Button isSmall type="submit" isDisabled={isAsking || draft.value.trim() === ''}>
          {text.askParaphrase}
        </Button>
      </div>
    </form>
  );
}

/** The numbers behind the outcome. */
function Figures({ receipt: { reason, loss_before: before, loss_after: after } }: { receipt: FeedbackOutcome }) {
  return (
    <details class="small soft">
      <summary>{text.figures}</summary>
      <dl class="pairs">
        <dt>{text.reason}</dt>
        <dd>{visibleText(reason)}</dd>
        {before !== null && after !== null && (
          <>
            <dt>{text.loss}</dt>
            <dd>{text.lossChange(formatNumber(before), formatNumber(after))}</dd>
          </>
        )}
      </dl>
    </details>
  );
}

/** Below this change, the likelihood is called unchanged. */
const MIN_CHANGE = 0.05;

/** What changed, in plain words. */
function describeOutcome({ state, loss_before: before, loss_after: after, supersedes }: FeedbackOutcome): string {
  const parts = [text.outcomes[state]];
  if (before !== null && after !== null) {
    // The loss is in nats per token, so the difference is the logarithm of the ratio of the probabilities.
    const ratio = Math.exp(before - after);
    if (Math.abs(ratio - 1) < MIN_CHANGE) parts.push(text.asLikely);
    else parts.push(ratio > 1 ? text.likelier(formatNumber(ratio)) : text.lessLikely(formatNumber(1 / ratio)));
  }
  if (supersedes.length > 0) parts.push(text.supersedes);
  return parts.join(' ');
}
