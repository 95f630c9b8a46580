export * from './types.ts';
export { calibrate, calibrationError, fitPlatt, type Platt } from './calibration.ts';
export { bestOf, expectedLatencies, penaltiesOf, resolveCandidates, type UtilityWeights } from './candidates.ts';
export { type ContestantOptions, contestantsOf } from './contestants.ts';
export { type CurveData, type CurvePoint, hullOf, type PreparedCurve, prepareCurve } from './cost-quality.ts';
export { crossFit, fitConfidence, fitShrinkage, splitValidation, type Trainer } from './cross-fit.ts';
export { type Familiarity, fitFamiliarity, nearestSimilarity } from './familiarity.ts';
export { createPolicy, type DecisionRule, MIN_CONFIDENCE, shrink, type Shrinkage } from './decision-rule.ts';
export type { Estimate, Estimator } from './estimator.ts';
export { explainDecision, QUERY_FEATURE_NAMES, type RouteExplanation } from './explain.ts';
export { checkFeedback, createExplorer, type Explorer, type ExploredDecision } from './exploration.ts';
export { foldsOf } from './folds.ts';
export { hashTerm } from './features/hashed-terms.ts';
export {
  type EncoderOptions,
  expectedTokens,
  fitRouteEncoder,
  loadRouteEncoder,
  readTextFeatures,
  type RouteEncoder,
  type RouteRequest,
  ROUTER_BUCKETS,
  type TextFeatures,
  withoutVectors,
} from './features/route-encoder.ts';
export { importanceOf, utilitiesOf } from './labels.ts';
export { createConstant } from './baselines/constant.ts';
export { type KnnOptions, trainKnn } from './baselines/knn.ts';
export { LINEAR_DEFAULTS, type LinearOptions, trainLinear } from './baselines/linear.ts';
export { LOGISTIC_DEFAULTS, type LogisticOptions, trainLogistic } from './baselines/logistic.ts';
export { LENGTH_ONLY, lengthPriorOf, RIDGE_DEFAULTS, type RidgeOptions, trainRidge } from './baselines/ridge.ts';
export { runSteps, runStepsWithPauses, type Steps } from './steps.ts';
export {
  type Contest,
  type Contestant,
  judge,
  selectBest,
  selectBestSteps,
  type Selection,
  type SelectOptions,
  simplestOf,
} from './select-best.ts';
export { createRouter, loadRouter, type Router, saveRouter, type Sha256 } from './stored-router.ts';
