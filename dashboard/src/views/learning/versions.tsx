import { useSignal } from '@preact/signals';
import { learningOf, type LearningStatus, type Loop, type Version } from '../../api/learning.ts';
import { permissions, client } from '../../app/session.ts';
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
import { messages } from '../../messages/index.ts';
import { DiffDialog } from './diff-dialog.tsx';
import { describeTest } from './test-result.ts';
import { VersionAnswers } from './version-answers.tsx';

const text = messages.learning.versions;
const learning = learningOf(client);
type Model = LearningStatus['models'][number];

/** All learned versions of each model, including rejected ones. */
export function Versions({ status, onChange }: { status: LearningStatus; onChange: () => void }) {
  if (status.models.length === 0) return <EmptyState icon="models" title={text.noModels} />;
  return (
    <div class="stack">
      {status.models.map((model) => (
        <ModelVersions
          key={model.model}
          model={model}
          run={status.runs.find((run) => run.model === model.model && run.state === 'running')}
          onChange={onChange}
        />
      ))}
    </div>
  );
}

function ModelVersions(props: { model: Model; run: LearningStatus['runs'][number] | undefined; onChange: () => void }) {
  const { model, run, onChange } = props;
  const id = model.model;
  const activeVersion = model.serves?.version ?? 0;
  const history = useResource((signal) => learning.history(id, signal), [id, model.newestVersion, activeVersion]);
  const error = useSignal<unknown>(null);
  const versionToShow = useSignal<number | null>(null);
  const versionToCompare = useSignal<Version | null>(null);
  /** 0: the base model. */
  const versionToActivate = useSignal<number | null>(null);
  const versions = history.data.value?.versions ?? [];

  async function start(loop: Loop): Promise<void> {
    try {
      error.value = null;
      await learning.run(id, loop);
      showToast(text.started);
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
    <section class="card stack" aria-label={text.label(visibleText(id))}>
      <div class="row learning-head">
        <h2>{visibleText(id)}</h2>
        <Badge tone={activeVersion === 0 ? 'none' : 'good'}>
          {activeVersion === 0 ? text.base : text.isActive(formatCount(activeVersion))}
        </Badge>
        {model.isBackgroundDue && <Badge tone="accent">{text.isBackgroundDue}</Badge>}
        {model.isDeepDue && <Badge tone="accent">{text.isDeepDue}</Badge>}
        {run !== undefined && <Badge tone="warn">{text.isRunning}</Badge>}
        {permissions.value.admin && (
          <span class="row">
            {run === undefined ? (
              <>
                <Button isSmall icon="play" onClick={() => void start('background')}>
                  {text.train}
                </Button>
                <Button isSmall icon="play" onClick={() => void start('deep')}>
                  {text.trainDeep}
                </Button>
              </>
            ) : (
              <Button isSmall icon="stop" onClick={() => void stop()}>
                {text.stop}
              </Button>
            )}
            {activeVersion !== 0 && (
              <Button isSmall icon="undo" onClick={() => (versionToActivate.value = 0)}>
                {text.revert}
              </Button>
            )}
          </span>
        )}
      </div>
      {error.value !== null && <ErrorNotice error={error.value} />}
      {history.error.value !== null && <ErrorNotice error={history.error.value} onRetry={history.reload} />}
      {history.data.value !== null && versions.length === 0 && <p class="soft">{text.empty}</p>}
      {versions.length > 0 && (
        <ListTable label={text.all} heads={text.columns}>
          {versions.map((version) => (
            <tr key={version.version} data-version={version.version}>
              <td>
                {version.version} <VersionState version={version} activeVersion={activeVersion} />
              </td>
              <td>
                <Moment ms={version.createdMs} />
              </td>
              <td>
                {version.numLearnedFrom > 0 && (
                  <Button
                    isSmall
                    kind="plain"
                    label={text.answersOf(text.answers(version.numLearnedFrom), formatCount(version.version))}
                    onClick={() => (versionToShow.value = version.version)}
                  >
                    {text.answers(version.numLearnedFrom)}
                  </Button>
                )}
              </td>
              <td class="learning-why">
                <p>{describeTest(version)}</p>
                <details>
                  <summary>{messages.learning.technical}</summary>
                  <dl class="pairs">
                    <dt>{text.loop}</dt>
                    <dd>{visibleText(version.loop)}</dd>
                    <dt>{text.reason}</dt>
                    <dd>{visibleText(version.reason)}</dd>
                  </dl>
                </details>
              </td>
              <td>
                <span class="row">
                  {version.parent !== null && version.parent > 0 && (
                    <Button isSmall onClick={() => (versionToCompare.value = version)}>
                      {text.compare}
                    </Button>
                  )}
                  {permissions.value.admin && version.isAccepted && version.version !== activeVersion && (
                    <Button isSmall onClick={() => (versionToActivate.value = version.version)}>
                      {text.activateVersion(formatCount(version.version))}
                    </Button>
                  )}
                  {permissions.value.admin && version.version === activeVersion && (
                    <Button
                      isSmall
                      icon="undo"
                      label={text.undoVersion(formatCount(version.version))}
                      onClick={() => (versionToActivate.value = version.parent ?? 0)}
                    >
                      {text.undo}
                    </Button>
                  )}
                </span>
              </td>
            </tr>
          ))}
        </ListTable>
      )}
      {versionToShow.value !== null && (
        <VersionAnswers model={id} version={versionToShow.value} onClose={() => (versionToShow.value = null)} />
      )}
      {versionToCompare.value !== null && (
        <DiffDialog
          model={id}
          from={versionToCompare.value.parent!}
          to={versionToCompare.value.version}
          onClose={() => (versionToCompare.value = null)}
        />
      )}
      {versionToActivate.value !== null && (
        <Confirm
          title={
            versionToActivate.value === 0
              ? text.confirmRevert
              : text.confirmActivate(formatCount(versionToActivate.value))
          }
          action={versionToActivate.value === 0 ? text.revertAction : text.activate}
          onConfirm={async () => {
            await learning.rollback(id, versionToActivate.value!);
            onChange();
          }}
          onClose={() => (versionToActivate.value = null)}
        >
          {text.activateHint}
        </Confirm>
      )}
    </section>
  );
}

function VersionState(props: { version: Version; activeVersion: number }) {
  const { version, isAccepted } = props.version;
  if (version === props.activeVersion) return <Badge tone="good">{text.active}</Badge>;
  return isAccepted ? null : <Badge tone="bad">{text.rejected}</Badge>;
}
