//! A database that was restored from a backup goes on as another node, which closes the one that was lost: no row that
//! the lake has is taken back, none comes twice, and none that was restored is left out.

#![allow(clippy::unwrap_used)]

mod world;

over_every_lake! {
    lost:
    rows_that_were_restored_and_not_drained_come_under_the_new_number,
    rows_that_the_lake_has_and_the_backup_has_not_stay,
    a_backup_that_ends_where_the_lake_does_goes_on_there,
    a_node_that_was_lost_before_it_drained_anything_is_closed_too,
    who_lives_on_as_the_lost_node_brings_nothing_any_more,
    what_the_lost_node_has_in_flight_comes_before_the_claim_or_not_at_all,
    a_closing_claim_whose_answer_is_lost_is_applied_once,
    who_is_restored_again_closes_all_that_were_lost,
    who_is_restored_again_closes_also_who_never_drained,
    of_two_databases_that_were_restored_from_one_backup_one_goes_on,
    each_table_is_closed_where_its_own_mark_is,
    a_backup_under_the_number_of_the_lost_node_stays_refused,
    a_table_with_rows_of_a_lost_node_takes_no_other_one,
}
