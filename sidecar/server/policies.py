"""What the settings say to each use case. Picks nothing and opens nothing."""

from sidecar.config import Settings
from sidecar.domain.confidence import ConfidenceRules
from sidecar.domain.edge_paths import RelationWeights
from sidecar.domain.health_report import HealthQuery
from sidecar.domain.llm import LlmBudget
from sidecar.domain.memory import MemoryType, Relation
from sidecar.domain.supersession import SupersessionRules
from sidecar.use_cases.activity import ActivityPolicy
from sidecar.use_cases.auto_link import AutoLinkPolicy
from sidecar.use_cases.build_context import ContextPolicy
from sidecar.use_cases.embed_memories import EmbedPolicy
from sidecar.use_cases.expand import ExpandPolicy
from sidecar.use_cases.inspect_graph import GraphDefaults
from sidecar.use_cases.judge_usefulness import JudgePolicy
from sidecar.use_cases.recall import RecallPolicy
from sidecar.use_cases.remember import RememberDefaults
from sidecar.use_cases.run_hygiene import HygienePolicy
from sidecar.use_cases.supersession import SupersessionPolicy
from sidecar.use_cases.validate import ValidationPolicy


def embed_policy(settings: Settings) -> EmbedPolicy:
    """Return how the embedding queue is worked off."""
    return EmbedPolicy(
        batch_size=settings.embed_batch_size,
        max_attempts=settings.embed_max_attempts,
        backoff_s=settings.embed_backoff_s,
        save_after_writes=settings.index_save_after_writes,
    )


def recall_policy(settings: Settings) -> RecallPolicy:
    """Return the thresholds of recall."""
    return RecallPolicy(
        floor=settings.recall_floor,
        candidates=settings.candidates,
        age_half_life_days=settings.age_half_life_days,
        machine_weight=settings.machine_weight,
        default_results=settings.default_results,
        standing_rule_weight=settings.standing_rule_weight,
        holdout_share=settings.holdout_share,
        is_recording=settings.recorded_recalls > 0,
    )


def judge_policy(settings: Settings) -> JudgePolicy:
    """Return when and how sessions are judged."""
    return JudgePolicy(
        idle_s=settings.judge_idle_s,
        keep_text_s=settings.judge_keep_text_s,
        batch_size=settings.judge_batch_size,
        max_attempts=settings.judge_max_attempts,
        backoff_s=settings.judge_backoff_s,
    )


def hygiene_policy(settings: Settings) -> HygienePolicy:
    """Return how often hygiene runs, and what it keeps."""
    return HygienePolicy(
        interval_s=settings.hygiene_interval_h * 3600.0,
        keep_text_s=settings.judge_keep_text_s,
        recorded_recalls=settings.recorded_recalls,
    )


def expand_policy(settings: Settings) -> ExpandPolicy:
    """Return how far a recall looks for related memories."""
    return ExpandPolicy(
        max_depth=settings.expand_depth,
        max_expanded=settings.expand_max,
        decay=settings.relation_decay,
        relation_weights=relation_weights(settings),
    )


def relation_weights(settings: Settings) -> RelationWeights:
    """Return how much of a memory's relevance each relation passes on."""
    return {
        Relation.SUPERSEDES: settings.weight_supersedes,
        Relation.CAUSED_BY: settings.weight_caused_by,
        Relation.DERIVED_FROM: settings.weight_derived_from,
        Relation.RELATES_TO: settings.weight_relates_to,
        Relation.CONTRADICTS: settings.weight_contradicts,
    }


def auto_link_policy(settings: Settings) -> AutoLinkPolicy:
    """Return which relations are made automatically."""
    return AutoLinkPolicy(
        is_on=settings.auto_link,
        threshold=settings.auto_link_threshold,
        max_links=settings.auto_link_max,
        is_refined=settings.llm_classification,
    )


def graph_defaults(settings: Settings) -> GraphDefaults:
    """Return how far looking at the graph goes."""
    return GraphDefaults(settings.graph_depth, settings.relation_decay, relation_weights(settings))


def validation_policy(settings: Settings) -> ValidationPolicy:
    """Return how far reports move confidence."""
    rules = ConfidenceRules(
        failure_factor=settings.failure_factor,
        golden_confidence=settings.golden_confidence,
        fall_back_below=settings.golden_fall_back,
    )
    return ValidationPolicy(settings.validation_adjustment, rules, listed_events=settings.listed_events)


def remember_defaults(settings: Settings) -> RememberDefaults:
    """Return what a memory is that is stored without more words."""
    return RememberDefaults(
        MemoryType(settings.remember_type), settings.remember_importance, settings.remember_confidence
    )


def supersession_policy(settings: Settings) -> SupersessionPolicy:
    """Return when a memory has proved better than an older one."""
    rules = SupersessionRules(
        similarity=settings.same_topic_threshold,
        successes=settings.supersede_successes,
        failures=settings.supersede_failures,
    )
    return SupersessionPolicy(rules, golden_confidence=settings.golden_confidence)


def health_defaults(settings: Settings) -> HealthQuery:
    """Return which memories need a look."""
    return HealthQuery(
        stale_days=settings.stale_days,
        low_confidence=settings.low_confidence,
        golden_confidence=settings.golden_confidence,
    )


def llm_budget(settings: Settings) -> LlmBudget:
    """Return what the language model may cost."""
    return LlmBudget(settings.llm_calls_a_day, settings.llm_tokens_a_day)


def context_policy(settings: Settings) -> ContextPolicy:
    """Return how much a context holds."""
    return ContextPolicy(
        token_budget=settings.context_tokens,
        max_golden_rules=settings.context_golden_rules,
        max_entry_characters=settings.context_entry_characters,
        machine_weight=settings.machine_weight,
        standing_rule_weight=settings.standing_rule_weight,
        golden_confidence=settings.golden_confidence,
        half_life_days=settings.context_half_life_days,
        own_project_factor=settings.context_own_project_factor,
    )


def activity_policy(settings: Settings) -> ActivityPolicy:
    """Return which files are listed."""
    return ActivityPolicy(listed_files=settings.recent_files, days=settings.recent_days)
