import { useSignal } from '@preact/signals';
import { learningOf, type LearningStatus, type Loop, type Version } from '../../api/learning.ts';
import { allows, client } from '../../app/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { Confirm } from '../../components/confirm.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { ListTable } from '../../components/list-table.tsx';
import { Moment } from '../../components/moment.tsx';
import { ErrorNotice } from '../../components/notice.tsx';
import { showToast } from '../../components/toast.tsx';
import { useResource } from '../../components/use-resource.ts';
import { formatCount } from '../../format/numbers.ts';
import { visibleText } from '../../format/visible-text.ts';
import { DiffDialog } from './diff-dialog.tsx';

const learning = learningOf(client);
type Model = LearningStatus['models'][number];

/** Every version of what was learned for a model, those that were refused too. */
export function Versions({ status, onChange }: { status: LearningStatus; onChange: () => void }) {
  if (status.models.length === 0) return <EmptyState icon="models" title="No model is loaded" />;
  return (
    <div class="stack">
      {status.models.map((model) => (
        <ModelVersions
          key={model.model}
          model={model}
          run={status.runs.find((one) => one.model === model.model && one.state === 'running')}
          onChange={onChange}
        />
      ))}
    </div>
  );
}

function ModelVersions(props: { model: Model; run: LearningStatus['runs'][number] | undefined; onChange: () => void }) {
  const { model, run, onChange } = props;
  const id = model.model;
  const serves = model.serves?.version ?? 0;
  const history = useResource((signal) => learning.history(id, signal), [id, model.newestVersion, serves]);
  const error = useSignal<unknown>(null);
  const diffed = useSignal<Version | null>(null);
  const wanted = useSignal<number | null>(null);
  const versions = history.data.value?.versions ?? [];

  async function start(loop: Loop): Promise<void> {
    try {
      error.value = null;
      await learning.run(id, loop);
      showToast(`Loop ${loop} runs.`);
    } catch (failure) {
      error.value = failure;
    }
    onChange();
  }

  async function stop(): Promise<void> {
    try {
      error.value = null;
      await learning.cancel(id);
    } catch (failure) {
      error.value = failure;
    }
    onChange();
  }

  return (
    <section class="card stack" aria-label={`Versions of ${visibleText(id)}`}>
      <div class="row learning-head">
        <h2>{visibleText(id)}</h2>
        <Badge tone={serves === 0 ? 'none' : 'good'}>
          {serves === 0 ? 'as in its file' : `version ${serves} serves`}
        </Badge>
        {model.isBackgroundDue && <Badge tone="accent">loop B is due</Badge>}
        {model.isDeepDue && <Badge tone="accent">loop C is due</Badge>}
        {run !== undefined && <Badge tone="warn">loop {visibleText(run.loop)} runs</Badge>}
        {allows.value.admin && (
          <span class="row">
            {run === undefined ? (
              <>
                <Button isSmall icon="play" onClick={() => void start('background')}>
                  Run loop B
                </Button>
                <Button isSmall icon="play" onClick={() => void start('deep')}>
                  Run loop C
                </Button>
              </>
            ) : (
              <Button isSmall icon="stop" onClick={() => void stop()}>
                Stop it
              </Button>
            )}
            {serves !== 0 && (
              <Button isSmall icon="undo" onClick={() => (wanted.value = 0)}>
                Back to the file
              </Button>
            )}
          </span>
        )}
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {history.error.value !== null && <ErrorNotice error={history.error.value} onRetry={history.reload} />}
      {history.data.value !== null && versions.length === 0 && (
        <p class="soft">
          Nothing was learned by a loop yet. Judge answers in the chat: loop B learns from them when there are enough,
          loop C goes over all of them again, once a week.
        </p>
      )}
      {versions.length > 0 && (
        <ListTable label="All versions" heads={['Version', 'When', 'Loop', 'From:', 'Why']}>
          {versions.map((version) => (
            <tr key={version.version} data-version={version.version}>
              <td>
                {version.version} <State version={version} serves={serves} />
              </td>
              <td>
                <Moment ms={version.createdMs} />
              </td>
              <td>{visibleText(version.loop)}</td>
              <td class="end">{formatCount(version.numLearnedFrom)}</td>
              <td class="learning-why">{visibleText(version.reason)}</td>
              <td>
                <span class="row">
                  {version.parent !== null && version.parent > 0 && (
                    <Button isSmall onClick={() => (diffed.value = version)}>
                      Compare
                    </Button>
                  )}
                  {allows.value.admin && version.isAccepted && version.version !== serves && (
                    <Button isSmall onClick={() => (wanted.value = version.version)}>
                      Let it serve
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </ListTable>
      )}
      {diffed.value !== null && (
        <DiffDialog
          model={id}
          from={diffed.value.parent!}
          to={diffed.value.version}
          onClose={() => (diffed.value = null)}
        />
      )}
      {wanted.value !== null && (
        <Confirm
          title={wanted.value === 0 ? 'Serve the model as in its file?' : `Let version ${wanted.value} serve?`}
          action="Do it"
          onConfirm={async () => {
            await learning.rollback(id, wanted.value!);
            onChange();
          }}
          onClose={() => (wanted.value = null)}
        >
          What single answers taught since is dropped. The history stays, so this can be undone.
        </Confirm>
      )}
    </section>
  );
}

function State({ version: { version, isAccepted }, serves }: { version: Version; serves: number }) {
  if (version === serves) return <Badge tone="good">serves</Badge>;
  return isAccepted ? null : <Badge tone="bad">refused</Badge>;
}
