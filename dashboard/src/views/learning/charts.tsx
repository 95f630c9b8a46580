import { learningOf, type LearningSeries, type VersionPoint } from '../../api/learning.ts';
import { client } from '../../app/session.ts';
import { EmptyState } from '../../components/empty-state.tsx';
import { LineChart } from '../../components/line-chart.tsx';
import { Loading } from '../../components/loading.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { messages } from '../../messages/index.ts';

const text = messages.learning.charts;

/** Loss, forgetting and router gain by version, and the feedback over time. */
export function Charts() {
  const series = useResource((signal) => learningOf(client).series(signal));
  const data = series.data.value;
  if (series.error.value !== null) return <ErrorNotice error={series.error.value} onRetry={series.reload} />;
  if (data === null) return <Loading label={text.loading} />;
  const adapters = data.adapters.filter(({ points }) => points.length > 0);
  const isEmpty = adapters.length === 0 && data.router.points.length === 0 && data.feedback.length === 0;
  if (isEmpty) {
    return (
      <EmptyState icon="learning" title={text.empty}>
        <p>{text.emptyHint}</p>
      </EmptyState>
    );
  }
  return (
    <div class="learning-charts">
      {adapters.map(({ model, points }) => (
        <LossChart key={model} model={model} points={points} />
      ))}
      {adapters.map(({ model, points }) => (
        <ForgettingChart key={model} model={model} points={points} />
      ))}
      {data.router.points.length > 0 && <RouterChart points={data.router.points} />}
      {data.feedback.length > 0 && <FeedbackChart feedback={data.feedback} />}
    </div>
  );
}

const versionsOf = (points: readonly VersionPoint[]): readonly number[] => points.map(({ version }) => version);

function LossChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = text.loss(visibleText(model));
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={text.lossLabel(visibleText(model))}
        x={versionsOf(points)}
        isTime={false}
        xLabel={text.version}
        range={[null, null]}
        lines={[
          { label: text.before, values: points.map(({ lossBefore }) => lossBefore), isDashed: true },
          { label: text.after, values: points.map(({ lossAfter }) => lossAfter) },
        ]}
      />
    </section>
  );
}

function ForgettingChart({ model, points }: { model: string; points: readonly VersionPoint[] }) {
  const title = text.forgetting(visibleText(model));
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      <LineChart
        label={text.forgettingLabel(visibleText(model))}
        x={versionsOf(points)}
        isTime={false}
        xLabel={text.version}
        range={[null, null]}
        lines={[{ label: text.lossIncrease, values: points.map(({ forgetting }) => forgetting) }]}
      />
    </section>
  );
}

function RouterChart({ points }: { points: readonly VersionPoint[] }) {
  return (
    <section class="card" aria-label={text.router}>
      <h2>{text.router}</h2>
      <LineChart
        label={text.routerLabel}
        x={versionsOf(points)}
        isTime={false}
        xLabel={text.version}
        range={[null, null]}
        lines={[
          { label: text.gain, values: points.map(({ gain }) => gain) },
          {
            label: text.lower,
            values: points.map(({ gainLow }) => gainLow),
            isDashed: true,
            colour: '--line-strong',
          },
          {
            label: text.upper,
            values: points.map(({ gainHigh }) => gainHigh),
            isDashed: true,
            colour: '--line-strong',
          },
        ]}
      />
    </section>
  );
}

function FeedbackChart({ feedback }: { feedback: LearningSeries['feedback'] }) {
  return (
    <section class="card" aria-label={text.feedback}>
      <h2>{text.feedback}</h2>
      <LineChart
        label={text.feedbackLabel}
        x={feedback.map(({ startMs }) => startMs / 1000)}
        format={formatCount}
        isCount
        lines={[
          { label: text.good, values: feedback.map(({ numUp }) => numUp) },
          { label: text.bad, values: feedback.map(({ numDown }) => numDown) },
          { label: text.corrected, values: feedback.map(({ numCorrected }) => numCorrected) },
        ]}
      />
    </section>
  );
}
