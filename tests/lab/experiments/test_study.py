"""The whole study on a tiny collection: every experiment's pieces, sentences and tables."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from incdsi.errors import InvalidFile, InvalidHyperparameters, InvalidInput
from incdsi.hyperparameters import BOLD, SAFE
from incdsi.progress import Progress
from incdsi_lab.baselines.ranking import best
from incdsi_lab.experiments import curves, generated_only, long_stream, main_table, product, query_count, rule, seeds
from incdsi_lab.experiments.comparing import require_agreement
from incdsi_lab.experiments.grid import Point, keeping_the_old, level
from incdsi_lab.experiments.judging import decoded, encoded, hits1, own_ranks, scores_of, searched, standing
from incdsi_lab.experiments.laboratory import EXPERIMENTS, chosen, run_studies, run_study, tasks_of, took
from incdsi_lab.experiments.methods import GENERAL, PAPER, RETRAINING, makers
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Pieces, Task, run_tasks
from incdsi_lab.experiments.tuned import chosen_by, tuned
from incdsi_lab.experiments.weights import GRIDS
from incdsi_lab.ranking import ranks_among
from tests.lab.experiments.conftest import Finished
from tests.lab.experiments.study_problems import TINY


def test_every_experiment_is_in_the_report(finished: Finished) -> None:
    report = (finished.page.parent / "report.md").read_text()
    page = finished.page.read_text()
    for name, module in EXPERIMENTS.items():
        assert f"## {module.TITLE}" in report
        assert f'id="{name}"' in page
    assert "incdsi repro tiny" in page
    assert "nan" not in report


def test_every_table_and_figure_is_a_file_too(finished: Finished) -> None:
    folder = finished.page.parent
    for name in EXPERIMENTS:
        section = EXPERIMENTS[name].section(finished.study)
        for table in section.tables:
            assert (folder / "tables" / f"{table.name}.tex").read_text() == table.latex()
            assert (folder / "tables" / f"{table.name}.md").read_text() == table.markdown()
        for figure in section.figures:
            assert (folder / "figures" / f"{figure.name}.svg").read_bytes().startswith(b"<?xml")
            assert (folder / "figures" / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("method", [GENERAL, RETRAINING, "dense", "BM25"])
@pytest.mark.parametrize("group", ["old", "new"])
def test_the_runs_and_qrels_give_others_the_figures_of_the_report(finished: Finished, method: str, group: str) -> None:
    folder = finished.page.parent
    qrels = list(ir_measures.read_trec_qrels(str(folder / "split" / f"qrels-{group}.txt")))
    run = list(ir_measures.read_trec_run(str(folder / "runs" / f"{method}.run")))
    found = ir_measures.calc_aggregate([ir_measures.Success @ 1, ir_measures.RR @ 10], qrels, run)
    ranks = finished.study.piece(main_table.name_of(method, finished.study.additions[-1]))["ranks"][group]
    assert len(qrels) == len(ranks)
    assert 100 * found[ir_measures.Success @ 1] == pytest.approx(hits1(ranks))
    assert 100 * found[ir_measures.RR @ 10] == pytest.approx(scores_of(ranks).mean("MRR@10"))


def test_progress_counts_up_to_its_total(finished: Finished) -> None:
    done = [done for done, _ in finished.progress]
    assert done == sorted(done)
    assert finished.progress[-1][0] == finished.progress[-1][1]


def test_progress_of_a_task_in_several_parts_never_goes_back(tmp_path: Path) -> None:
    def parts(progress: Progress) -> dict[str, object]:
        for done, of in ((0, 2), (2, 2), (0, 10), (4, 10)):
            progress(done, of)
        return {}

    seen: list[tuple[int, int]] = []
    tasks = [Task(name="a", run=parts, seconds=10.0), Task(name="b", run=parts, seconds=30.0)]
    run_tasks(tasks, Pieces(tmp_path, {}), lambda *at: seen.append(at))
    assert seen == sorted(seen)
    assert seen[-1] == (40, 40)


def test_progress_of_several_studies_is_that_of_all_of_them(finished: Finished, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    shutil.copytree(finished.page.parent, tmp_path / "seed")
    studies = [Study(finished.study.data, finished.study.split, TINY, tmp_path / "seed")] * 2
    run_studies(
        studies, tmp_path, [rule.NAME], count=2, command="incdsi repro tiny", progress=lambda *at: seen.append(at)
    )
    assert seen == [(1000, 2000), (2000, 2000)]


def test_a_finished_study_computes_nothing_again(finished: Finished, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = {path: path.stat().st_mtime_ns for path in (finished.page.parent / "pieces").iterdir()}
    again = Study(finished.study.data, finished.study.split, TINY, finished.page.parent)
    names = ["main", "hinge"]
    run_tasks(tasks_of(again, names), again.pieces)
    assert {path: path.stat().st_mtime_ns for path in (finished.page.parent / "pieces").iterdir()} == pieces


def test_another_study_in_the_same_folder_is_refused(finished: Finished) -> None:
    with pytest.raises(InvalidInput, match=r"another .*trials"):
        Study(finished.study.data, finished.study.split, replace(TINY, trials=4), finished.page.parent)


def test_a_split_that_was_changed_is_refused(finished: Finished, tmp_path: Path) -> None:
    folder = shutil.copytree(finished.page.parent, tmp_path / "copy")
    new = folder / "split" / "new.txt"
    new.write_text("".join(reversed(new.read_text().splitlines(keepends=True))))
    with pytest.raises(InvalidFile, match=r"new\.txt has changed since it was written"):
        Study(finished.study.data, finished.study.split, TINY, folder)


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "time"])
def test_every_table_of_scores_says_how_many_queries_it_rests_on(finished: Finished, name: str) -> None:
    for table in EXPERIMENTS[name].section(finished.study).tables:
        assert "test queries" in table.caption


def test_ranks_that_ir_measures_would_not_find_are_refused(finished: Finished) -> None:
    method = makers(finished.study)["dense"](lambda *_: None)
    method.fit(finished.study.initial)
    method.add(finished.study.new)
    groups = finished.study.groups(len(finished.study.new))
    found = searched(method, groups)
    judged = finished.study.write_run("dense", found, groups)
    ranks = standing(found, groups)
    require_agreement(judged, ranks)
    with pytest.raises(InvalidInput, match="ir-measures does not agree"):
        require_agreement(judged, {**ranks, "old": ranks["old"].translate(str.maketrans("1.", ".1"))})


def test_old_and_new_queries_are_those_of_initial_and_new_documents(finished: Finished) -> None:
    study = finished.study
    groups = study.groups(2)
    asked = {query.text: query.document_id for query in study.data.collection.of("test")}
    everyone = [*study.split.initial, *study.split.new]
    for group, some in groups.items():
        for text, owner in zip(some.texts, some.owners, strict=True):
            assert asked[text] == everyone[owner]
            assert (everyone[owner] in study.split.initial) == (group == "old")
    assert len(groups["new"]) == 2


def test_no_test_query_is_learned_from_or_chosen_by(finished: Finished) -> None:
    study = finished.study
    tested = {query.text for query in study.data.collection.of("test")}
    for part in (study.initial, study.new):
        assert not tested & {*part.queries.texts, *part.held_out.texts}


def test_the_main_table_has_every_method_and_dense_is_what_it_says(finished: Finished) -> None:
    study = finished.study
    last = study.additions[-1]
    assert {RETRAINING, GENERAL, PAPER, "BM25", "dense", "DPR", "DSI-DPR", "DSI-Scratch"} <= set(makers(study))
    ranks = study.piece(main_table.name_of("dense", last))["ranks"]
    vectors = np.concatenate([study.initial.embeddings, study.new.embeddings])
    for group, some in study.groups(last).items():
        expected = np.minimum(ranks_among(vectors, some.embeddings, some.owners), 11)
        np.testing.assert_array_equal(decoded(ranks[group]), expected)


def test_the_curves_end_where_the_main_table_is_when_the_order_is_the_same(finished: Finished) -> None:
    study = finished.study
    ends = {
        hits1(study.piece(f"curves/dense/{order}")["at"][str(len(study.new))]["old"]) for order in range(TINY.orders)
    }
    assert ends == {hits1(study.piece(main_table.name_of("dense", len(study.new)))["ranks"]["old"])}
    assert curves.marks(study)[-1] == len(study.new)


def test_the_stream_grows_to_all_documents(finished: Finished) -> None:
    study = finished.study
    assert long_stream.counts(study)[-1] == len(study.data.documents)
    assert len(long_stream.final(study, "general, from nothing")) == len(study.data.collection.of("test"))


@pytest.mark.parametrize("method", ["DPR", "DSI-DPR", "DSI-Scratch"])
def test_the_stream_has_every_method_at_each_mark(finished: Finished, method: str) -> None:
    study = finished.study
    for count in long_stream.counts(study):
        ranks = study.piece(f"stream/{method}, from a trained tenth")["at"][str(count)]["ranks"]["all"]
        assert len(ranks) == count  # one test query a document
    assert f"{method}, from a trained tenth" in (finished.page.parent / "report.md").read_text()


def test_generated_only_takes_natural_queries_away(finished: Finished) -> None:
    part = generated_only.without_natural(finished.study.new)
    assert len(part.queries) > 0
    assert part.queries.generated.all()


def test_at_most_so_many_queries_a_document(finished: Finished) -> None:
    new = finished.study.new
    limited = query_count.limited(new, 2, seed=0)
    kept = np.bincount(limited.queries.owners, minlength=len(new))
    there = np.bincount(new.queries.owners, minlength=len(new))
    np.testing.assert_array_equal(kept, np.minimum(there, 2))
    assert query_count.limited(new, query_count.ALL, seed=0) is new


def point(key: str, val_old: float, val_new: float) -> Point:
    return Point(key=key, how=SAFE, old=0.0, new=0.0, val_old=val_old, val_new=val_new)


def test_a_point_of_the_grid_is_chosen_by_validation_queries_among_those_that_keep_the_old() -> None:
    points = [point("careful", 50.0, 40.0), point("level", 49.8, 45.0), point("daring", 49.0, 60.0)]
    assert keeping_the_old(points, 49.7).key == "level"
    assert keeping_the_old(points, 60.0).key == "careful"


def test_the_general_form_is_tuned_by_the_rule_and_the_papers_by_its_beta(finished: Finished) -> None:
    study = finished.study
    piece = study.piece("tuned/general")
    kept = [trial for trial in piece["trials"] if trial["old"] >= piece["level"]]
    chosen = next(trial for trial in piece["trials"] if trial["weights"] == asdict(tuned(study, "general")))
    assert chosen["new"] == max(trial["new"] for trial in kept) if kept else True
    retrained = main_table.retrained(study)["val"]["old"]
    assert piece["level"] == pytest.approx(float(np.where((r := decoded(retrained)) <= 10, 1 / r, 0).mean()))
    assert tuned(study, "paper") == chosen_by(study, "paper", 5.0)


def test_the_product_is_beside_the_study_and_was_told_nothing_of_it(finished: Finished) -> None:
    study = finished.study
    rows = product.rows(study)
    assert set(rows) == set(product.ROWS)
    for piece in rows.values():
        assert len(piece["ranks"]["old"]) == len(study.initial)
        assert len(piece["ranks"]["new"]) == len(study.new)
    said = (finished.page.parent / "report.md").read_text()
    assert "incdsi itself, trained first, fused" in said
    assert "BM25 over text and known questions" in said


def test_several_seeds_make_one_report(finished: Finished) -> None:
    section = seeds.main_section([finished.study, finished.study])
    (spread, each) = section.tables
    rows = {row[0]: row for row in spread.rows}
    retrained = hits1(main_table.retrained(finished.study)["ranks"]["old"])
    assert rows["full retraining"][1] == f"{retrained:.1f} ± 0.0"
    assert len(each.columns) == 3
    told = [aim.text for aim in section.aims]
    for how in ("General form by the rule", "The product itself, from nothing", "The product itself, trained first"):
        assert sum(text.startswith(how) for text in told) == 2  # old and new
    assert seeds.stream_section([finished.study]).tables[0].rows


def test_both_forms_are_to_keep_old_documents_as_retraining_does(finished: Finished) -> None:
    retrained = finished.study.piece(main_table.name_of(RETRAINING, finished.study.additions[-1]))
    assert level(finished.study) == pytest.approx(hits1(retrained["val"]["old"]) - 0.3)


def test_a_larger_beta_never_chooses_worse_for_old_documents(finished: Finished) -> None:
    for form in ("paper", "general"):
        trials = finished.study.piece(f"tuned/{form}")["trials"]
        old = {json.dumps(trial["weights"]): trial["old"] for trial in trials}
        chosen_old = [
            old[json.dumps(asdict(chosen_by(finished.study, form, beta)))]  # type: ignore[arg-type]
            for beta in (0.1, 1.0, 5.0, 50.0)
        ]
        assert chosen_old == sorted(chosen_old)
        assert asdict(tuned(finished.study, form)) in [trial["weights"] for trial in trials]  # type: ignore[arg-type]


def test_what_an_index_begins_with_is_on_the_frontier() -> None:
    assert {SAFE, BOLD} <= set(GRIDS["general"])


def test_ranks_survive_a_line_of_text() -> None:
    ranks = np.array([1, 2, 9, 10, 11, 400])
    assert encoded(ranks) == "129a.."
    np.testing.assert_array_equal(decoded(encoded(ranks)), np.minimum(ranks, 11))
    assert hits1("1.1a") == 50.0
    assert scores_of("1.2").mean("MRR@10") == pytest.approx(50.0)


def test_a_tie_counts_against_the_right_document() -> None:
    vectors = np.array([[1.0], [1.0], [2.0]], dtype=np.float32)
    ranked = best(np.ones((2, 1), dtype=np.float32), vectors, 3)
    assert own_ranks(ranked, np.array([0, 2])).tolist() == [3, 1]


def test_a_stopped_study_keeps_its_pieces(tmp_path: Path) -> None:
    pieces = Pieces(tmp_path, {"dataset": "x"})
    ran: list[str] = []

    def task(name: str) -> Task:
        return Task(name=name, run=lambda _: (ran.append(name) or {}) if name != "c" or len(ran) > 2 else _stop())

    def _stop() -> dict[str, object]:
        ran.append("stopped")
        raise KeyboardInterrupt

    tasks = [task(name) for name in ("a", "b", "c")]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, pieces)
    run_tasks(tasks, pieces)
    assert ran == ["a", "b", "stopped", "c"]


def test_a_broken_piece_is_named(tmp_path: Path) -> None:
    pieces = Pieces(tmp_path, {})
    pieces.keep("a", {})
    pieces.path("a").write_text("{")
    with pytest.raises(InvalidFile, match=r"a\.json: this piece is not valid JSON"):
        pieces["a"]


def test_unknown_experiments_are_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"called maine; there are main.*frontier"):
        chosen(["maine"])
    assert chosen(["frontier", "main"]) == ["main", "frontier"]


def test_what_several_experiments_share_is_counted_once(finished: Finished) -> None:
    seconds = took(finished.study, ["main", "time"])
    assert seconds["main"] > 0
    assert seconds["time"] == 0


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidHyperparameters, match="orders"):
        replace(TINY, orders=0)
    with pytest.raises(InvalidHyperparameters, match="marks"):
        replace(TINY, marks=(0.5,))


def test_one_experiment_alone_reports_alone(finished: Finished, tmp_path: Path) -> None:
    folder = shutil.copytree(finished.page.parent, tmp_path / "copy")
    study = Study(finished.study.data, finished.study.split, TINY, folder)
    page = run_study(study, ["hinge"], command="incdsi repro tiny --only hinge")
    assert 'id="hinge"' in page.read_text()
    assert 'id="main"' not in page.read_text()
