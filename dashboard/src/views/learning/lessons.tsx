import { useSignal } from '@preact/signals';
import { type Lesson, learningOf } from '../../api/learning.ts';
import { hrefOf } from '../../app/router.ts';
import { permissions, client } from '../../app/session.ts';
import { Badge, type Tone } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Loading } from '../../components/loading.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount, formatNumber, formatShare } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.learning.lessons;
const learning = learningOf(client);
const PAGE_SIZE = 50;
const MAX_LESSONS = 500;

const OUTCOMES: Readonly<Record<string, string>> = text.outcomes;
const RATINGS: Readonly<Record<string, string>> = text.ratings;
const TONES: Readonly<Record<string, Tone>> = { success: 'good', failure: 'bad' };

/** The rated answers, with what was learned from each and how to undo it. */
export function Lessons({ onChange }: { onChange: () => void }) {
  const limit = useSignal(PAGE_SIZE);
  const lessons = useResource((signal) => learning.lessons({ limit: limit.value }, signal), [limit.value]);
  const lessonToUndo = useSignal<Lesson | null>(null);
  const data = lessons.data.value;
  return (
    <div class="stack">
      {lessons.error.value !== null && <ErrorNotice error={lessons.error.value} onRetry={lessons.reload} />}
      {data === null && lessons.error.value === null && <Loading label={text.loading} />}
      {data?.lessons.length === 0 && (
        <EmptyState icon="learning" title={text.empty}>
          <p>{text.emptyHint}</p>
        </EmptyState>
      )}
      {data !== null && <LessonList lessons={data.lessons} onUndo={(lesson) => (lessonToUndo.value = lesson)} />}
      {data?.isComplete === false && limit.value < MAX_LESSONS && (
        <div>
          <Button onClick={() => (limit.value = Math.min(MAX_LESSONS, limit.value + PAGE_SIZE))}>{text.more}</Button>
        </div>
      )}
      {lessonToUndo.value !== null && (
        <Confirm
          title={text.confirmUndo}
          action={text.undo}
          onConfirm={async () => {
            await learning.forget(lessonToUndo.value!.requestId);
            showToast(text.undone);
            lessons.reload();
            onChange();
          }}
          onClose={() => (lessonToUndo.value = null)}
        >
          {text.undoHint}
        </Confirm>
      )}
    </div>
  );
}

/** `onUndo` is omitted where nothing can be undone. */
export function LessonList({ lessons, onUndo }: { lessons: readonly Lesson[]; onUndo?: (lesson: Lesson) => void }) {
  return (
    <ul class="lessons">
      {lessons.map((lesson) => (
        <li key={lesson.requestId} class="card stack" data-request={lesson.requestId}>
          <LessonCard lesson={lesson} />
          <div class="row">
            <a href={hrefOf('audit', lesson.requestId)}>{text.openAudit}</a>
            {onUndo !== undefined && permissions.value.write && (
              <Button
                isSmall
                icon="undo"
                label={text.undoLesson(visibleText(lesson.query))}
                onClick={() => onUndo(lesson)}
              >
                {text.undo}
              </Button>
            )}
          </div>
        </li>
      ))}
    </ul>
  );
}

function LessonCard({ lesson }: { lesson: Lesson }) {
  const { verdict, correction, outcome, version } = lesson;
  return (
    <>
      <div class="row">
        <Badge tone={TONES[verdict] ?? 'none'}>
          {correction === null ? (RATINGS[verdict] ?? visibleText(verdict)) : text.corrected}
        </Badge>
        <span class="small soft">
          {visibleText(lesson.model)} · <Moment ms={lesson.createdMs} />
        </span>
      </div>
      <dl class="pairs lesson">
        <dt>{text.question}</dt>
        <dd dir="auto">{visibleText(lesson.query)}</dd>
        <dt>{text.answer}</dt>
        <dd dir="auto">{visibleText(lesson.answer)}</dd>
        {correction !== null && (
          <>
            <dt>{text.correction}</dt>
            <dd dir="auto">{visibleText(correction)}</dd>
          </>
        )}
      </dl>
      <p>
        <strong>{OUTCOMES[outcome.state] ?? visibleText(outcome.state)}</strong>{' '}
        {version !== null && `${text.trained(formatCount(version))} `}
        {certaintyOf(lesson)}
      </p>
      <details class="small">
        <summary>{messages.learning.technical}</summary>
        <dl class="pairs">
          <dt>{text.of}</dt>
          <dd class="mono">{visibleText(lesson.requestId)}</dd>
          <dt>{text.state}</dt>
          <dd>{visibleText(outcome.state)}</dd>
          <dt>{text.reason}</dt>
          <dd>{visibleText(outcome.reason)}</dd>
          {outcome.lossBefore !== null && outcome.lossAfter !== null && (
            <>
              <dt>{text.loss}</dt>
              <dd>
                {formatNumber(outcome.lossBefore)} → {formatNumber(outcome.lossAfter)}
              </dd>
            </>
          )}
        </dl>
      </details>
    </>
  );
}

/** The loss is the mean of −log p over tokens, so exp(−loss) is their geometric mean probability. */
function certaintyOf({ outcome: { state, lossBefore, lossAfter } }: Lesson): string | null {
  if (state === 'remembered') return text.certaintyRemembered;
  if (lossBefore === null || lossAfter === null) return null;
  return text.certainty(formatShare(Math.exp(-lossBefore)), formatShare(Math.exp(-lossAfter)));
}
